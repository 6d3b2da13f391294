"""One iteration of all ranks on one clock: who computed, waited or moved data, and when."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from trisect.analysis import clocks, pairing, waits
from trisect.errors import TrisectError
from trisect.results.tables import Trace

COMPUTE, WAIT, TRANSFER = "compute", "wait", "transfer"

SPANS = ["iteration", "rank", "section", "start_s", "end_s"]
PIECES = [*SPANS, "kind", "op", "bytes", "pair"]

_KEY = ["rank", "iteration", "section", "occurrence"]


@dataclass(frozen=True)
class Timeline:
    """The slowest iteration and a typical one. Seconds since each iteration began, on the first rank's clock."""

    slowest: int
    median: int  # the middle one of the others; the slowest itself where there is but one
    sections: pd.DataFrame  # SPANS: one row per rank, iteration, section and occurrence
    pieces: pd.DataFrame  # PIECES: they fill the sections one after the other; op, bytes and pair: the collective's
    residual_s: float  # within what the ranks' clocks agree (clocks.Clocks); NaN for one rank


def timeline(trace: Trace) -> Timeline:
    """Put the slowest and the median iteration of a job, all of its ranks, on one clock.

    A collective is drawn where it is exposed, its wait before its transfer; where compute hides a part, that counts as
    compute, as everywhere else. Lengths are those of docs/metrics.md; only places depend on how clocks are aligned.

    Raises:
        TrisectError: as `decompose`, or no collective of all ranks to align the clocks by.
    """
    trace, _ = pairing.share_iterations(trace)
    world_size = int(trace.readings["rank"].nunique())
    paired, outside = pairing.pair(trace.collectives, world_size)
    exposed = waits.expose(paired, trace.sections)
    clock = clocks.align(pd.concat([paired, outside]), world_size) or _own_clock(trace.sections, world_size)
    slowest, median = _chosen(trace.sections)
    sections = trace.sections[trace.sections["iteration"].isin([slowest, median])]
    pieces = _pieces(sections, exposed[exposed["iteration"].isin([slowest, median]) & (exposed["exposed_ns"] > 0)])
    begin = _aligned(sections, clock).groupby(sections["iteration"])["start_ns"].min()
    return Timeline(
        slowest,
        median,
        _since(begin, sections, clock)[SPANS],
        _since(begin, pieces, clock)[PIECES],
        clock.residual_ns / 1e9,
    )


def _own_clock(sections: pd.DataFrame, world_size: int) -> clocks.Clocks:
    if world_size > 1:
        raise TrisectError(
            "no collective of all ranks to align their clocks by; a timeline needs one, such as a barrier an iteration"
        )
    first, zero = np.array([sections["start_ns"].min()]), np.zeros(1)
    return clocks.Clocks(np.array([sections["rank"].iloc[0]]), first, zero, zero, float("nan"), 0)


def _chosen(sections: pd.DataFrame) -> tuple[int, int]:
    """The slowest iteration, and the middle one of the others; by the span summed over sections and ranks."""
    spans = (sections["end_ns"] - sections["start_ns"]).groupby(sections["iteration"]).sum()
    order = spans.sort_values(kind="stable").index.to_numpy()
    return int(order[-1]), int(order[(len(order) - 2) // 2])


def _pieces(sections: pd.DataFrame, exposed: pd.DataFrame) -> pd.DataFrame:
    """Compute, wait and transfer of each section, one after the other, on the ranks' own clocks."""
    rows = exposed.merge(sections[[*_KEY, "start_ns", "end_ns"]], on=_KEY, suffixes=("", "_of_section"))
    rows["arrival_ns"] = rows["start_ns"] + rows["hidden_ns"]
    rows = rows.sort_values([*_KEY, "arrival_ns"], kind="stable")
    # What sticks out of its section was hidden there already: nothing is drawn outside.
    rows["end_ns"] = rows[["end_ns", "end_ns_of_section"]].min(axis=1)
    rows["arrival_ns"] = rows[["arrival_ns", "end_ns"]].min(axis=1)
    rows["moving_ns"] = (rows["end_ns"] - rows["transfer_ns"]).clip(lower=rows["arrival_ns"])
    # Integers all the way: as float64, nanoseconds since the epoch would lose their last two digits.
    within = rows.groupby(_KEY)
    before = within["end_ns"].shift(fill_value=0).mask(within.cumcount() == 0, rows["start_ns_of_section"])
    rest = sections.set_index(_KEY)
    last = within["end_ns"].max().reindex(rest.index, fill_value=0)
    rest["start_ns"] = np.maximum(rest["start_ns"], last.astype("int64"))
    rest = rest.reset_index()
    none: dict[str, Any] = {"op": "", "bytes": -1, "pair": -1}
    parts = [
        rows.assign(kind=COMPUTE, start_ns=before, end_ns=rows["arrival_ns"], **none),
        rows.assign(kind=WAIT, start_ns=rows["arrival_ns"], end_ns=rows["moving_ns"]),
        rows.assign(kind=TRANSFER, start_ns=rows["moving_ns"]),
        rest.assign(kind=COMPUTE, **none),
    ]
    types = dict.fromkeys(("iteration", "rank", "bytes", "pair", "start_ns", "end_ns"), "int64")
    columns = ["section", "kind", "op", *types]
    pieces = pd.concat([part[columns].astype(types) for part in parts])  # a table without rows has no types of its own
    return pieces[pieces["end_ns"] > pieces["start_ns"]].sort_values(["iteration", "rank", "start_ns"], kind="stable")


def _aligned(rows: pd.DataFrame, clock: clocks.Clocks) -> pd.DataFrame:
    return rows.assign(**{name: clock.align(rows["rank"], rows[name]) for name in ("start_ns", "end_ns")})


def _since(begin: pd.Series, rows: pd.DataFrame, clock: clocks.Clocks) -> pd.DataFrame:
    """`rows` with start_s and end_s, counted from the begin of each iteration."""
    aligned, origin = _aligned(rows, clock), rows["iteration"].map(begin)
    seconds = {f"{name}_s": (aligned[f"{name}_ns"] - origin) / 1e9 for name in ("start", "end")}
    return rows.assign(**seconds).reset_index(drop=True)
