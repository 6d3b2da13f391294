"""A decomposition and a list of annotations as text: what `trisect decompose` prints, within 120 columns."""

import shlex
from itertools import zip_longest

import pandas as pd

from trisect.analysis.decomposition import Decomposition
from trisect.results.tables import OUTSIDE, TOTAL, WAIT_CAUSES
from trisect.trace.annotation_list import AnnotationList, AnnotationUse
from trisect.wording import NO_NUMBER, counted, percent, seconds

TIME_HEADINGS = {
    "span": "span_s",
    "compute": "compute_s",
    "of it idle": "idle_s",
    "transfer": "transfer_s",
    "wait": "wait_s",
    "hidden": "hidden_s",
}
"""Of the first table, with the columns of tables.DECOMPOSITION; `hidden` is communication under compute."""

EFFICIENCY_HEADINGS = {
    "load\nbalance": "load_balance",
    "comm.\nefficiency": "comm_efficiency",
    "parallel\nefficiency": "parallel_efficiency",
}

_WIDEST_NAME = 32


def decomposition_text(result: Decomposition) -> list[str]:
    """Two tables of a row a section: where the time went, then why ranks waited and how efficient they were."""
    ranks = counted(int(result.table["gpus"].iloc[0]), "rank")
    times = [["section", "iterations", *TIME_HEADINGS]]
    causes = [["section", *(f"wait by\n{cause}" for cause in WAIT_CAUSES), *EFFICIENCY_HEADINGS, "most often last"]]
    for row in result.table.to_dict("records"):
        name = str(row["section"])
        short = name if len(name) <= _WIDEST_NAME else f"{name[: _WIDEST_NAME - 1]}…"
        times.append([short, str(row["iterations"]), *(_time(row[column]) for column in TIME_HEADINGS.values())])
        why = [_time(row[column]) for column in WAIT_CAUSES.values()]
        efficiencies = [percent(row[column]) for column in EFFICIENCY_HEADINGS.values()]
        causes.append([short, *why, *efficiencies, _most_often_last(result.collectives, name)])
    return [
        f"{ranks}; times per iteration, as means over ranks and iterations:",
        *_aligned(times),
        "",
        *_aligned(causes),
    ]


def _most_often_last(collectives: pd.DataFrame, section: str) -> str:
    """Which rank the others waited for most often, in how many of the section's collectives with a wait."""
    of_section = collectives["section"] != OUTSIDE if section == TOTAL else collectives["section"] == section
    last = collectives.loc[of_section & (collectives["max_wait_s"] > 0), "last_rank"]
    if last.empty:
        return NO_NUMBER
    rank = int(last.mode()[0])
    return f"rank {rank} in {(last == rank).sum()} of {len(last)}"


def annotations_text(found: AnnotationList, iteration: str) -> list[str]:
    """The annotations that can be sections, and the one that marks iterations; `iteration` was looked for."""
    ranks = counted(found.ranks, "rank")
    if not found.marker:
        begin = (
            f"{ranks}; no annotation is named '{iteration}#k' or {iteration!r}: name the one that marks iterations with"
        )
        return [begin, "--iteration NAME", "", *_uses(found.uses, "per rank")]
    mean = f"{found.iterations:.3g} per rank, {seconds(found.mean_s)} on average"
    begin = f"{ranks}; iterations are marked by {found.marker}: {mean}"
    if not found.uses:
        return [begin, "No other annotation begins in an iteration: decompose without --section measures it whole."]
    apart = [use for use in found.uses if not use.depth and use.ranks == found.ranks]
    longest = sorted(apart or found.uses, key=lambda use: -use.count * use.mean_s)[:3]
    some = shlex.join(use.name for use in found.uses if use in longest)
    return [
        begin,
        *_uses(found.uses, "per iteration"),
        "",
        "Sections must be on all ranks and not overlap: name an annotation or those below it, not both. For example:",
        f"trisect decompose --section {some} -- TRACES",
    ]


def _uses(uses: list[AnnotationUse], heading: str) -> list[str]:
    """A row an annotation, indented below the one that it lies in; last of all its name, which may be long."""
    rows = [[f"{use.count:.3g}", str(use.ranks), seconds(use.mean_s), "  " * use.depth + use.name] for use in uses]
    return _aligned([[heading, "ranks", "mean time", "annotation"], *rows], left=-1)


def _time(value: float) -> str:
    """A time of a trace, whose smallest unit is the nanosecond."""
    return seconds(round(value, 9))


def _aligned(rows: list[list[str]], left: int = 0) -> list[str]:
    """Rows as lines, the first of them headings, which may have several lines; column `left` is aligned to the left."""
    headings = zip_longest(*(heading.split("\n")[::-1] for heading in rows[0]), fillvalue="")
    lines = [*list(headings)[::-1], *rows[1:]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    formats = ["<" if column == left % len(widths) else ">" for column in range(len(widths))]
    return [
        "  ".join(f"{cell:{to}{width}}" for cell, to, width in zip(row, formats, widths, strict=True)).rstrip()
        for row in lines
    ]
