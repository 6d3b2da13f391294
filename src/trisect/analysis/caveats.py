"""What a reader of one job's numbers must know about them, as notes. docs/metrics.md has the rules."""

from collections.abc import Iterable

import pandas as pd

from trisect.analysis import bootstrap, clocks
from trisect.results.notes import Note, note
from trisect.results.tables import ALL_TO_ALL, POINT_TO_POINT, Trace

UNATTRIBUTED_LIMIT = 0.01
"""Share of the device time without a launch above which the reader is warned."""

DISAGREEMENT_LIMIT = 0.01
"""Share of a section's span by which the two ways to find the late start may differ, beyond the clocks' residual."""


def caveats(
    trace: Trace, exposed: pd.DataFrame, iterations: pd.DataFrame, clock: clocks.Clocks | None, world_size: int
) -> list[Note]:
    """All caveats of one job, from its trace, `waits.expose`, tables.ITERATIONS and the aligned clocks, if any."""
    found = [*_together(trace.notes), *_unattributed(trace.readings), *_few(iterations["iteration"].nunique())]
    found += _kinds(exposed)
    if world_size > 1 and exposed["paired"].any():
        found += _clock(clock)
        found += _late_start(exposed, iterations, clock) if clock else []
    return found


def _together(notes: Iterable[Note]) -> list[Note]:
    """Notes about one rank each, joined where they say the same of several: `rank` becomes `ranks`."""
    ranks: dict[str, list[Note]] = {}
    for one in notes:
        same = note(one.kind, **{key: value for key, value in one.values.items() if key != "rank"})
        ranks.setdefault(same.model_dump_json(), []).append(one)
    return [
        note(alike[0].kind, **alike[0].values | {"ranks": [one.values["rank"] for one in alike]})
        for alike in ranks.values()
    ]


def _unattributed(readings: pd.DataFrame) -> list[Note]:
    device, lost = int(readings["device_ns"].sum()), int(readings["unattributed_ns"].sum())
    return [note("unattributed", share=lost / device)] if device and lost / device > UNATTRIBUTED_LIMIT else []


def _few(count: int) -> list[Note]:
    if count == 1:
        return [note("one_iteration")]
    return [note("few_iterations", count=count, needed=bootstrap.MIN_ITERATIONS)] * (count < bootstrap.MIN_ITERATIONS)


def bounded(exposed: pd.DataFrame) -> pd.Series:
    """Which collectives' least exposed time is not their transfer: rooted ones, and send and recv."""
    return ~exposed["op"].isin(ALL_TO_ALL) & (exposed["group_size"] > 1)


def _kinds(exposed: pd.DataFrame) -> list[Note]:
    found = []
    for section, rows in exposed.groupby("section", sort=False):
        kinds = set(rows.loc[bounded(rows), "op"])
        if rooted := sorted(kinds - POINT_TO_POINT):
            share = rows.loc[rows["op"].isin(rooted), "exposed_ns"].sum() / max(1, rows["exposed_ns"].sum())
            found.append(note("rooted_collectives", section=str(section), ops=list(rooted), share=float(share)))
        if alone := sorted(kinds & POINT_TO_POINT):
            found.append(note("point_to_point", section=str(section), ops=list(alone)))
    return found


def _clock(clock: clocks.Clocks | None) -> list[Note]:
    if clock is None:
        return [note("no_common_clock")]
    residual_s = clock.residual_ns / 1e9
    return [note("clocks_aligned", ranks=len(clock.ranks), collectives=clock.collectives, residual_s=residual_s)]


def _late_start(exposed: pd.DataFrame, iterations: pd.DataFrame, clock: clocks.Clocks) -> list[Note]:
    count = iterations["iteration"].nunique()
    wait = clocks.wait_by_clock(exposed, clock) / count
    apart = (wait["by_clock"] - wait["by_duration"]).abs()
    from_clocks = 2 * clock.residual_ns / 1e9 * exposed.groupby("section")["slot"].nunique()
    span = iterations.groupby("section")["span_s"].sum() / count
    odd = wait[apart > (from_clocks + DISAGREEMENT_LIMIT * span).reindex(wait.index)]
    return [
        note("late_start_uncertain", section=str(section), by_clock_s=float(by_clock), by_duration_s=float(by_duration))
        for section, by_clock, by_duration in odd.itertuples()
    ]
