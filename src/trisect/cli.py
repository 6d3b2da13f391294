"""The `trisect` command. Each subcommand is one entry of COMMANDS."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from trisect.analysis.differences import COMPARED, SMALLEST_CHANGE, WORSE
from trisect.config.loading import load_machine
from trisect.errors import shown
from trisect.pipeline.compare import compare_folders, write_comparison
from trisect.pipeline.decompose import write_decomposition
from trisect.pipeline.predict_command import predict_from_constants
from trisect.pipeline.rates import rates_in_words
from trisect.report.text.notes import all_in_words
from trisect.report.text.tables_text import comparison_text
from trisect.results.layout import Layout, RunLayout

SHOWN = ("section", "gpus", "iterations", "span_s", "compute_s", "transfer_s", "wait_s")
SHOWN_EFFICIENCIES = ("load_balance", "comm_efficiency", "parallel_efficiency")


def _decompose_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Cut each section of each iteration of a job into compute, transfer and wait. Reads one PyTorch profiler trace"
        " a rank, prints the table, and writes decomposition.csv, collectives.csv, iterations.parquet, ranks.parquet"
        " and findings.md."
    )
    parser.add_argument("traces", metavar="DIR", type=Path, help="folder of the job's traces, *.json or *.json.gz")
    parser.add_argument(
        "--section",
        metavar="NAME",
        nargs="+",
        action="extend",
        help="record_function names to measure, after DIR (default: each iteration is one section)",
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
    out = RunLayout(arguments.out)
    result = write_decomposition(arguments.traces, out, sections=arguments.section, iteration=arguments.iteration)
    print(result.table[[*SHOWN, *SHOWN_EFFICIENCIES]].to_string(index=False, float_format=lambda value: f"{value:.4g}"))
    for sentence in all_in_words(result.caveats):
        print(f"- {sentence}")
    others = (out.collectives, out.iterations, out.ranks, out.findings)
    print(f"wrote {out.decomposition}, {', '.join(path.name for path in others)}")


def _config_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", metavar="DIR", type=Path, default=Path("config"), help="the config folder (default: %(default)s)"
    )


def _predict_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "What the model in docs/model.md makes of an experiment at counts that nobody has run: compute, transfer, wait"
        " and efficiencies, up to which count GPUs pay, and what would move it. Runs nothing and writes nothing."
    )
    parser.add_argument("--machine", metavar="NAME", required=True, help="a file of config/machines/ that has links")
    parser.add_argument("--experiment", metavar="NAME", required=True, help="an experiment of config/study.yaml")
    parser.add_argument(
        "--gpus", metavar="N", type=int, nargs="+", help="counts (default: powers of two from the smallest to 1,024)"
    )
    parser.add_argument("--sections", action="store_true", help="a row for each section too, not only for all together")
    _config_argument(parser)


def _predict(arguments: argparse.Namespace) -> None:
    asked = (arguments.config, arguments.machine, arguments.experiment, arguments.gpus)
    print(*predict_from_constants(*asked, sections=arguments.sections), sep="\n")


def _rates_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Hold every measured transfer of an experiment against bytes over a rate: the rate it implies on its route, and"
        " how far the rate at the smallest count is off at the others. The algorithm comes from the runs' NCCL logs;"
        " where none says it, both readings are shown."
    )
    parser.add_argument("results", metavar="DIR", type=Path, help="an experiment's folder, results/EXPERIMENT")
    parser.add_argument("--machine", metavar="NAME", required=True, help="the file of config/machines/ that it ran on")
    _config_argument(parser)


def _rates(arguments: argparse.Namespace) -> None:
    for line in rates_in_words(arguments.results, load_machine(arguments.machine, arguments.config)):
        print(line)


def _study_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "The published study from the model in docs/model.md: every run's traces are made up, then read like measured"
        " ones. Measures nothing; what it writes says so."
    )
    _config_argument(parser)
    parser.add_argument(
        "--out", metavar="OUT", type=Path, default=Path("results/study"), help="where to write (default: %(default)s)"
    )


def _study(arguments: argparse.Namespace) -> None:
    from trisect.pipeline.study import write_study  # draws figures: half a second that other commands need not wait for

    begun = time.monotonic()
    table = write_study(arguments.config, arguments.out)
    runs = len(table[["experiment", "gpus"]].drop_duplicates())
    print(f"wrote {Layout(arguments.out).report}: {runs} modelled runs in {time.monotonic() - begun:.0f} s")


def _compare_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Compare two sweeps, or two runs, of the same thing before and after a change. Prints what differs beyond"
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
    found = compare_folders(arguments.before, arguments.after, arguments.metric, arguments.least)
    write_comparison(found, arguments.out)
    for line in comparison_text(found):
        print(line)
    print(f"wrote {arguments.out}")
    return int(not found.beyond_noise(WORSE).empty)


Command = tuple[str, Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], int | None]]

COMMANDS: dict[str, Command] = {
    "decompose": ("a folder of traces into compute, transfer and wait", _decompose_arguments, _decompose),
    "compare": ("two sweeps or runs, before and after a change", _compare_arguments, _compare),
    "predict": ("an experiment at counts that nobody has run, by a model", _predict_arguments, _predict),
    "rates": ("measured transfers against bytes over a rate", _rates_arguments, _rates),
    "study": ("the published study, simulated by the model", _study_arguments, _study),
}
"""Name: what it does in a line, its arguments, what it runs."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line; `argv` defaults to the process's own.

    Returns:
        0, or what the subcommand says: 1 where `compare` finds something worse.

    Raises:
        SystemExit: with code 2 where the arguments or the input are at fault, after one line about it on stderr.
    """
    parser = argparse.ArgumentParser(prog="trisect", description="What a job spends its time on as ranks are added.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (summary, add_arguments, run) in COMMANDS.items():
        command = commands.add_parser(name, help=summary)
        add_arguments(command)
        command.set_defaults(run=run)
    arguments = parser.parse_args(argv)
    with shown():
        return arguments.run(arguments) or 0
