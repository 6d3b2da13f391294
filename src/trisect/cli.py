"""The `trisect` command. Each subcommand is one entry of COMMANDS.

Imports of what a command does are inside it, so that none waits for another's, and help waits for none.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from trisect.errors import TrisectError, shown
from trisect.wording import listed

NO_TRACES = (
    "no traces are named: give the job's folder or its files, for example trisect decompose DIR --section A B;"
    " after --section A B write -- before them"
)


def _decompose_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "trisect decompose TRACES [--section NAME ...] [--iteration NAME] [--out OUT]\n"
        "       trisect decompose --list TRACES [--iteration NAME]"
    )
    parser.description = (
        "Splits each section of each iteration of a job into compute, transfer and wait. Reads one PyTorch profiler"
        " trace per rank, prints where the time went, why ranks waited and which was late, and writes"
        " decomposition.csv, collectives.csv, iterations.parquet, ranks.parquet, notes.json and findings.md."
    )
    parser.add_argument(
        "traces",
        metavar="TRACES",
        type=Path,
        nargs="*",
        help="the traces of one job, *.json or *.json.gz: their folder, or the files",
    )
    parser.add_argument(
        "--list", action="store_true", help="list the annotations that can be sections, and write nothing"
    )
    parser.add_argument(
        "--section",
        metavar="NAME",
        nargs="+",
        action="extend",
        help="annotations (record_function names) to measure as sections (default: each iteration is one section)",
    )
    parser.add_argument(
        "--iteration",
        metavar="NAME",
        default="ProfilerStep",
        help="the annotation that marks an iteration, NAME#k or NAME (default: %(default)s)",
    )
    parser.add_argument(
        "--out", metavar="OUT", type=Path, default=Path("decomposition"), help="where to write (default: %(default)s)"
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


def _config_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", metavar="DIR", type=Path, default=Path("config"), help="the config folder (default: %(default)s)"
    )


def _predict_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Predicts an experiment at GPU counts that you have not measured, by the model in docs/model.md: compute,"
        " transfer, wait, cost and efficiencies, up to which count more GPUs pay, and what would change that."
        " Runs nothing and writes nothing."
    )
    parser.add_argument("--machine", metavar="NAME", required=True, help="a file of config/machines/ that has links")
    parser.add_argument("--experiment", metavar="NAME", required=True, help="an experiment of config/study.yaml")
    parser.add_argument(
        "--gpus",
        metavar="N",
        type=int,
        nargs="+",
        help="GPU counts (default: powers of two from the smallest that it fits on to 1,024)",
    )
    parser.add_argument("--sections", action="store_true", help="show each section too, not only their total")
    _config_argument(parser)


def _predict(arguments: argparse.Namespace) -> None:
    from trisect.pipeline.predict_command import predict_from_constants

    asked = (arguments.config, arguments.machine, arguments.experiment, arguments.gpus)
    print(*predict_from_constants(*asked, sections=arguments.sections), sep="\n")


def _rates_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Compares each measured transfer of an experiment with the time that its bytes should take. Shows the rate that"
        " the transfer implies on its route (inside a node or between nodes), and the relative error at other counts if"
        " the rate of the smallest count held there. The algorithm is read from the runs' NCCL logs; where no log"
        " names it, the rates under both assumed algorithms are shown."
    )
    parser.add_argument("results", metavar="DIR", type=Path, help="an experiment's folder, results/EXPERIMENT")
    parser.add_argument("--machine", metavar="NAME", required=True, help="the file of config/machines/ that it ran on")
    _config_argument(parser)


def _rates(arguments: argparse.Namespace) -> None:
    from trisect.config.loading import load_machine
    from trisect.pipeline.rates import rates_in_words

    print(*rates_in_words(arguments.results, load_machine(arguments.machine, arguments.config)), sep="\n")


def _study_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Simulates the published study by the model in docs/model.md: writes the traces that every run would leave,"
        " and reads them like measured ones. Measures nothing, and says so in what it writes."
    )
    _config_argument(parser)
    parser.add_argument(
        "--out", metavar="OUT", type=Path, default=Path("results/study"), help="where to write (default: %(default)s)"
    )


def _study(arguments: argparse.Namespace) -> None:
    from trisect.pipeline.study import write_study
    from trisect.results.layout import Layout

    begun = time.monotonic()
    table = write_study(arguments.config, arguments.out)
    runs = len(table[["experiment", "gpus"]].drop_duplicates())
    print(f"wrote {Layout(arguments.out).report}: {runs} modelled runs in {time.monotonic() - begun:.0f} s")


def _compare_arguments(parser: argparse.ArgumentParser) -> None:
    from trisect.analysis.differences import COMPARED, SMALLEST_CHANGE

    parser.description = (
        "Compares two sweeps, or two runs, of the same thing before and after a change. Prints what differs beyond"
        " noise and writes all differences. Exit code: 0 no metric is worse beyond noise, 1 some are, 2 bad input."
    )
    parser.add_argument("before", metavar="BEFORE", type=Path, help="a results folder, or the folder of one run")
    parser.add_argument("after", metavar="AFTER", type=Path, help="the same after the change")
    parser.add_argument(
        "--metric",
        metavar="NAME",
        nargs="+",
        choices=COMPARED,
        default=COMPARED,
        help=f"what to compare, after the folders (default: all of {', '.join(COMPARED)})",
    )
    parser.add_argument(
        "--least",
        metavar="SHARE",
        type=_share,
        default=SMALLEST_CHANGE,
        help="smallest change that counts: of the section's span for times, in points for efficiencies"
        " (default: %(default)s)",
    )
    parser.add_argument(
        "--out", metavar="FILE", type=Path, default=Path("comparison.csv"), help="where to write (default: %(default)s)"
    )


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text} is no share; give a number from 0 to below 1")
    return value


def _compare(arguments: argparse.Namespace) -> int:
    from trisect.analysis.differences import WORSE
    from trisect.pipeline.compare import compare_folders, write_comparison
    from trisect.report.text.tables_text import comparison_text

    found = compare_folders(arguments.before, arguments.after, arguments.metric, arguments.least)
    write_comparison(found, arguments.out)
    print(*comparison_text(found), f"wrote {arguments.out}", sep="\n")
    return int(not found.beyond_noise(WORSE).empty)


Command = tuple[str, Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], int | None]]

COMMANDS: dict[str, Command] = {
    "decompose": ("split the time of a job's traces into compute, transfer and wait", _decompose_arguments, _decompose),
    "compare": ("compare two sweeps or runs, before and after a change", _compare_arguments, _compare),
    "predict": ("predict an experiment at GPU counts that you have not measured", _predict_arguments, _predict),
    "rates": ("compare each transfer with the time that its bytes should take", _rates_arguments, _rates),
    "study": ("simulate the published study by the model", _study_arguments, _study),
}
"""Name: what it does in a line, its arguments, what it runs."""


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
    for name, (summary, add_arguments, run) in COMMANDS.items():
        command = commands.add_parser(name, help=summary)
        if name in asked[:1]:
            add_arguments(command)
        command.set_defaults(run=run)
    arguments, others = parser.parse_known_args(asked)
    if "traces" in arguments:  # argparse takes traces for unknown where an option stands before or between them
        arguments.traces += [Path(other) for other in others if not other.startswith("-")]
        others = [other for other in others if other.startswith("-") and other != "--"]
    if others:
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    with shown():
        return arguments.run(arguments) or 0
