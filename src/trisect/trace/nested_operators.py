"""Operators of the host that lie inside others: most of them, and not needed to tell when the host computed."""

import numpy as np

from trisect.trace.events import MISSING_NS
from trisect.trace.growing_columns import Column, GrowingColumns, Mask


def calls_inside(calls_ns: Column, start_ns: Column, end_ns: Column) -> Column:
    """How many of the sorted times lie strictly within each interval."""
    before_end = np.searchsorted(calls_ns, end_ns, side="left")
    return np.maximum(before_end - np.searchsorted(calls_ns, start_ns, side="right"), 0)


def absorption(start_ns: Column, dur_ns: Column, thread: Column, c10d: Mask) -> tuple[Mask, Mask]:
    """Which operators stand for those inside them, and which lie inside such a one.

    One stands for others if it calls no torch.distributed, and has ended when the last of its thread in this
    batch starts: in a file in order of time, no more can come inside it.
    """
    absorbing, absorbed = np.zeros(len(start_ns), bool), np.zeros(len(start_ns), bool)
    end_ns = start_ns + dur_ns
    for one in np.unique(thread):
        own = np.flatnonzero(thread == one)
        own = own[np.lexsort((-end_ns[own], start_ns[own]))]
        start, end = start_ns[own], end_ns[own]
        plain = ~c10d[own] & (calls_inside(start[c10d[own]], start, end) == 0)
        absorbing[own] = stands = plain & (end < start[-1])
        latest = np.maximum.accumulate(np.where(stands, end, MISSING_NS))
        inside = ~c10d[own][1:] & (dur_ns[own][1:] >= 0) & (end[1:] <= latest[:-1])
        absorbed[own[1:]] = inside
    return absorbing, absorbed


def absorbed_too_soon(host: GrowingColumns) -> bool:
    """Whether an operator that stands for others turned out to call torch.distributed, so that they count."""
    thread, c10d, start_ns = (host[name] for name in ("thread", "c10d", "start_ns"))
    end_ns, absorbing = start_ns + host["dur_ns"], host["absorbed"] == 1
    calls_in = (
        calls_inside(np.sort(start_ns[(thread == one) & (c10d == 1)]), start_ns, end_ns)[absorbing & (thread == one)]
        for one in np.unique(thread[c10d == 1])
    )
    return any((counts > 0).any() for counts in calls_in)
