"""The `trisect` command. Each subcommand is one entry of COMMANDS, and of commands.yaml its words and arguments.

Imports of what a command does are inside it, so that none waits for another's, and help waits for none.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trisect.errors import TrisectError, shown
from trisect.host import shipped_yaml
from trisect.wording import listed

NO_TRACES = (
    "no traces are named: give the job's folder or its files, for example trisect decompose DIR --section A B;"
    " after --section A B write -- before them"
)


def _decompose(arguments: argparse.Namespace) -> None:
    from trisect.report.text.decomposition_text import annotations_text, decomposition_text

    traces, sections = _traces_apart(arguments.traces, arguments.section)
    iteration = arguments.iteration.removesuffix("#k")
    if arguments.list:
        from trisect.trace.annotation_list import list_annotations

        print(*annotations_text(list_annotations(traces, iteration), iteration), sep="\n")
        return
    from trisect.pipeline.decompose import write_decomposition
    from trisect.report.text.note_words import all_in_words
    from trisect.results.layout import RunLayout

    out = RunLayout(arguments.out)
    result = write_decomposition(traces, out, sections=sections, iteration=iteration)
    print(*decomposition_text(result), "", sep="\n")
    for sentence in all_in_words(result.caveats):
        print(f"- {sentence}")
    others = (out.collectives, out.iterations, out.ranks, out.notes, out.findings)
    print(f"wrote {out.decomposition}, {', '.join(path.name for path in others)}")


def _traces_apart(traces: list[Path], sections: list[str] | None) -> tuple[list[Path], list[str] | None]:
    """Traces and sections, where `--section A B TRACES` took the traces for sections too: what exists at its end.

    Raises:
        TrisectError: no traces are named, or no sections before them.
    """
    if traces:
        return traces, sections
    left = list(sections or [])
    if left and Path(left[-1]).is_dir():
        traces = [Path(left.pop())]
    else:
        while left and Path(left[-1]).is_file():
            traces = [Path(left.pop()), *traces]
    if not traces:
        raise TrisectError(NO_TRACES)
    if not left:
        raise TrisectError(f"--section names only traces ({listed(traces)}); name sections before them")
    return traces, left


def _predict(arguments: argparse.Namespace) -> None:
    from trisect.pipeline.predict_command import predict_from_constants

    asked = (arguments.config, arguments.machine, arguments.experiment, arguments.gpus)
    print(*predict_from_constants(*asked, sections=arguments.sections), sep="\n")


def _rates(arguments: argparse.Namespace) -> None:
    from trisect.config.loading import load_machine
    from trisect.pipeline.rates import rates_in_words

    print(*rates_in_words(arguments.results, load_machine(arguments.machine, arguments.config)), sep="\n")


def _study(arguments: argparse.Namespace) -> None:
    from trisect.pipeline.study import write_study
    from trisect.results.layout import Layout

    begun = time.monotonic()
    table = write_study(arguments.config, arguments.out)
    runs = len(table[["experiment", "gpus"]].drop_duplicates())
    print(f"wrote {Layout(arguments.out).report}: {runs} modelled runs in {time.monotonic() - begun:.0f} s")


def _compare(arguments: argparse.Namespace) -> int:
    from trisect.analysis.differences import WORSE
    from trisect.pipeline.compare import compare_folders, write_comparison
    from trisect.report.text.tables_text import comparison_text

    found = compare_folders(arguments.before, arguments.after, arguments.metric, arguments.least)
    write_comparison(found, arguments.out)
    print(*comparison_text(found), f"wrote {arguments.out}", sep="\n")
    return int(not found.beyond_noise(WORSE).empty)


COMMANDS: dict[str, Callable[[argparse.Namespace], int | None]] = {
    "decompose": _decompose,
    "compare": _compare,
    "predict": _predict,
    "rates": _rates,
    "study": _study,
}


def _metric() -> dict[str, Any]:
    from trisect.analysis.differences import COMPARED

    return {"choices": COMPARED, "default": COMPARED}


def _share() -> dict[str, Any]:
    from trisect.analysis.differences import SMALLEST_CHANGE

    def share(text: str) -> float:
        if not 0 <= float(text) < 1:
            raise argparse.ArgumentTypeError(f"{text} is no share; give a number from 0 to below 1")
        return float(text)

    return {"type": share, "default": SMALLEST_CHANGE}


ARGUMENT_KINDS: dict[str, Callable[[], dict[str, Any]]] = {
    "text": dict,
    "path": lambda: {"type": Path},
    "number": lambda: {"type": int},
    "metric": _metric,
    "share": _share,
}
"""What a kind of argument is to argparse."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line; `argv` defaults to the process's own.

    Returns:
        0, or what the subcommand says: 1 where `compare` finds something worse.

    Raises:
        SystemExit: with code 2 where the arguments or the input are at fault, after one line about it on stderr.
    """
    asked = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(
        prog="trisect",
        description="Splits each GPU's time into compute, transfer and wait, and says when more GPUs stop paying.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    words = shipped_yaml("trisect", "commands.yaml")
    for name, run in COMMANDS.items():
        command = commands.add_parser(
            name, help=words[name]["summary"], usage=words[name].get("usage"), description=words[name]["description"]
        )
        for argument, options in words[name]["arguments"].items() if name in asked[:1] else ():
            command.add_argument(argument, **ARGUMENT_KINDS[options.pop("kind", "text")](), **options)
        command.set_defaults(run=run)
    arguments, others = parser.parse_known_args(asked)
    if "traces" in arguments:  # argparse takes traces for unknown where an option stands before or between them
        arguments.traces += [Path(other) for other in others if not other.startswith("-")]
        others = [other for other in others if other.startswith("-") and other != "--"]
    if others:
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    with shown():
        try:
            code = arguments.run(arguments) or 0
            sys.stdout.flush()
        except BrokenPipeError:  # of `trisect ... | head`: nobody reads on
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        return code
