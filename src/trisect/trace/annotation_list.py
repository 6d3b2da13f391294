"""The annotations of a job's traces, so that one can choose which to measure as sections; measures nothing itself."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from trisect.trace.collective_names import is_of_collective
from trisect.trace.event_reader import Reader
from trisect.trace.events import MISSING_NS
from trisect.trace.growing_columns import Column, Mask
from trisect.trace.intervals import containing
from trisect.trace.read_job import read_each, trace_files
from trisect.trace.recording import ANNOTATION, name_as_kind
from trisect.trace.windows import is_iteration


@dataclass(frozen=True)
class AnnotationUse:
    """One annotation that can be a section. Its counts and times are means over the ranks that have it."""

    name: str  # as in the trace; where iterations are unknown also numbered ones, as "name#k"
    count: float  # in an iteration; of the whole trace where no annotation marks iterations
    ranks: int
    mean_s: float
    depth: int  # how many of the listed annotations it mostly lies in


@dataclass(frozen=True)
class AnnotationList:
    """The annotations of one job, each followed by those within it, else in order of time."""

    ranks: int
    marker: str  # the annotation that marks iterations, "name#k" or "name"; "" where none does
    iterations: float  # per rank, and their mean time; NaN where no annotation marks iterations
    mean_s: float
    uses: list[AnnotationUse]


def list_annotations(source: Path | Iterable[Path], iteration: str) -> AnnotationList:
    """List the annotations that begin within an iteration, or all where no annotation marks iterations.

    Args:
        source: as for `read_job`.
        iteration: as for `read_job`.

    Raises:
        TrisectError: there is no trace, or a file is damaged beyond repair.
    """
    tables = read_each(trace_files(source), partial(_annotations_of, iteration=iteration))
    found = pd.concat([table.assign(rank=rank) for rank, table in enumerate(tables)], ignore_index=True)
    markers = found[found["marker"]]
    found = found[~found["marker"] & ((found["iteration"] >= 0) & ~found["name"].str.endswith("#k") | markers.empty)]
    by_name = found.groupby("name", sort=False)
    return AnnotationList(
        len(tables),
        "" if markers.empty else str(markers["name"].iloc[0]),
        len(markers) / len(tables) if len(markers) else math.nan,
        markers["dur_ns"].mean() / 1e9,
        list(_nested({str(name): rows for name, rows in by_name}, len(markers) / len(tables) or 1)),
    )


def _nested(by_name: dict[str, pd.DataFrame], iterations: float) -> Iterator[AnnotationUse]:
    """One use per name, each followed by those that mostly lie in it. A name can only lie in one that came before."""
    inside: dict[str, list[str]] = {"": []}
    for name, rows in by_name.items():
        within = Counter(rows["within"]).most_common(1)[0][0]
        inside[within if within in inside else ""].append(name)
        inside[name] = []

    def uses(parent: str, depth: int) -> Iterator[AnnotationUse]:
        for name in inside[parent]:
            rows = by_name[name]
            ranks = rows["rank"].nunique()
            yield AnnotationUse(name, len(rows) / ranks / iterations, ranks, rows["dur_ns"].mean() / 1e9, depth)
            yield from uses(name, depth + 1)

    return uses("", 0)


def _annotations_of(path: Path, iteration: str) -> pd.DataFrame:
    """One row per annotation but collectives, by start: name, dur_ns, marker, iteration (-1: in none), within."""
    rows: set[tuple[int, int, str]] = set()  # which also drops duplicated events
    for batch in Reader(path, host_ops=False).batches():
        for at, event in enumerate(batch.events):
            if event.cat in ANNOTATION and event.ph == "X" and not is_of_collective(event.name):
                rows.add((int(batch.start_ns[at]), -int(batch.dur_ns[at]), event.name))
    usable = sorted(row for row in rows if row[0] != MISSING_NS and row[1] <= 0)
    names = [name for _, _, name in usable]
    start_ns, dur_ns = np.array([row[:2] for row in usable], np.int64).reshape(-1, 2).T * np.array([[1], [-1]])
    markers = np.array([*map(is_iteration(iteration), names)], bool)
    return pd.DataFrame(
        {
            "name": np.array([name_as_kind(name) for name in names], object),
            "dur_ns": dur_ns,
            "marker": markers,
            "iteration": containing(start_ns[markers], (start_ns + dur_ns)[markers], start_ns),
            "within": _around(names, start_ns + dur_ns, markers),
        }
    )


def _around(names: list[str], end_ns: Column, markers: Mask) -> list[str]:
    """Of each annotation, by start, the name of the innermost one around it that is no marker."""
    around: list[str] = []
    opened: list[tuple[int, str]] = []
    for name, end, is_marker in zip(names, end_ns, markers, strict=True):
        while opened and opened[-1][0] < end:
            opened.pop()
        around.append(name_as_kind(opened[-1][1]) if opened else "")
        if not is_marker:
            opened.append((end, name))
    return around
