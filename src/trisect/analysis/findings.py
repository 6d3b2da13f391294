"""What a reader of the numbers must know about them, as sentences. The rules stand in docs/metrics.md."""

from __future__ import annotations

import pandas as pd

from trisect.analysis import clocks, spread, wording
from trisect.tables import ALL_TO_ALL, POINT_TO_POINT, Trace

UNATTRIBUTED_LIMIT = 0.01
"""Share of the device time without a launch above which the reader is warned."""

DISAGREEMENT_LIMIT = 0.01
"""Share of a section's span by which the two ways to find the late start may differ, beyond the clocks' residual."""


def findings(
    trace: Trace, exposed: pd.DataFrame, iterations: pd.DataFrame, clock: clocks.Clocks | None, world_size: int
) -> list[str]:
    """All findings about one job.

    Args:
        trace: what was decomposed.
        exposed: from `waits.expose`.
        iterations: per iteration and section, with `wait_late_start_s` and `span_s`.
        clock: the aligned clocks, None where there are none.
        world_size: the number of ranks.
    """
    found = [*_reading(trace.readings), *_few(iterations["iteration"].nunique()), *_kinds(exposed)]
    if world_size > 1 and exposed["paired"].any():
        found += _clock(clock)
        found += _late_start(exposed, iterations, clock) if clock else []
    return found


def _reading(readings: pd.DataFrame) -> list[str]:
    found = []
    for repaired, rows in readings[readings["repairs"] > 0].groupby("repaired"):
        count = int(rows["repairs"].sum())
        found.append(
            f"{wording.ranks(rows['rank']).capitalize()}: {count} value{'s' if count != 1 else ''} mended while reading"
            f" ({repaired}{' each' if len(rows) > 1 else ''}): every number here rests on that."
        )
    for skipped, rows in readings[readings["skipped_iterations"] != ""].groupby("skipped_iterations"):
        found.append(f"{wording.ranks(rows['rank']).capitalize()}: iterations left out: {skipped}.")
    device, lost = int(readings["device_ns"].sum()), int(readings["unattributed_ns"].sum())
    if device and lost / device > UNATTRIBUTED_LIMIT:
        found.append(
            f"{lost / device:.1%} of the device time belongs to no launch (CUDA graphs, or launches that the trace"
            " lacks) and is in no section."
        )
    return found


def _few(count: int) -> list[str]:
    if count == 1:
        return ["Only 1 iteration: no spread can be given, and jitter cannot be told from imbalance."]
    if count < spread.MIN_ITERATIONS:
        return [f"Only {count} iterations: the intervals are too narrow; measure {spread.MIN_ITERATIONS} or more."]
    return []


def bounded(exposed: pd.DataFrame) -> pd.Series:
    """Which collectives' least exposed time is not their transfer: rooted ones, and send and recv."""
    return ~exposed["op"].isin(ALL_TO_ALL) & (exposed["group_size"] > 1)


def _kinds(exposed: pd.DataFrame) -> list[str]:
    found = []
    for section, rows in exposed.groupby("section", sort=False):
        kinds = set(rows.loc[bounded(rows), "op"])
        if rooted := sorted(kinds - POINT_TO_POINT):
            share = rows.loc[rows["op"].isin(rooted), "exposed_ns"].sum() / max(1, rows["exposed_ns"].sum())
            found.append(
                f"Section {section!r} has {', '.join(rooted)} ({share:.1%} of its exposed communication), in which not"
                " every rank waits for all: of these the transfer is a lower bound, the wait an upper one, and its"
                " causes are uncertain."
            )
        if alone := sorted(kinds & POINT_TO_POINT):
            found.append(
                f"Section {section!r} has {', '.join(alone)}, whose other end a trace does not name: their whole time"
                " counts as transfer, which is an upper bound."
            )
    return found


def _clock(clock: clocks.Clocks | None) -> list[str]:
    if clock is None:
        return [
            "No collective that all ranks wait for joins them all, so their clocks cannot be aligned: late start is not"
            " given. Compute, transfer and wait need no clock."
        ]
    return [
        f"Clocks of {len(clock.ranks)} ranks aligned by {clock.collectives} collectives: 95 % of their ends agree"
        f" within {clock.residual_ns / 1e3:.3g} us."
    ]


def _late_start(exposed: pd.DataFrame, iterations: pd.DataFrame, clock: clocks.Clocks) -> list[str]:
    count = iterations["iteration"].nunique()
    wait = clocks.wait_by_clock(exposed, clock) / count
    apart = (wait["by_clock"] - wait["by_duration"]).abs()
    from_clocks = 2 * clock.residual_ns / 1e9 * exposed.groupby("section")["slot"].nunique()
    span = iterations.groupby("section")["span_s"].sum() / count
    odd = wait[apart > (from_clocks + DISAGREEMENT_LIMIT * span).reindex(wait.index)]
    return [
        f"Section {section!r}: by aligned clocks its ranks wait {odd.loc[section, 'by_clock']:.3g} s, by how long their"
        f" collectives last {odd.loc[section, 'by_duration']:.3g} s: late start is uncertain by the difference."
        for section in odd.index
    ]
