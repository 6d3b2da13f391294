"""Sets of time intervals, as numpy arrays of integer nanoseconds.

A set is an int64 array of shape (n, 2): start and end of half-open intervals. `union` makes any set
disjoint and sorted; every other function here needs its sets so, and returns them so.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Intervals = NDArray[np.int64]


def as_intervals(starts: ArrayLike, ends: ArrayLike) -> Intervals:
    """Intervals from their starts and ends, each of shape (n,); not yet disjoint."""
    return np.column_stack((np.asarray(starts, np.int64), np.asarray(ends, np.int64)))


def union(intervals: Intervals) -> Intervals:
    """The same points in time as disjoint sorted intervals; those that touch are joined, empty ones dropped."""
    order = np.argsort(intervals[:, 0], kind="stable")
    intervals = intervals[order[intervals[order, 1] > intervals[order, 0]]]
    if len(intervals) == 0:
        return np.empty((0, 2), np.int64)
    latest_end = np.maximum.accumulate(intervals[:, 1])
    opens = np.flatnonzero(np.r_[True, intervals[1:, 0] > latest_end[:-1]])
    closes = np.r_[opens[1:] - 1, len(intervals) - 1]
    return np.column_stack((intervals[opens, 0], latest_end[closes]))


def covered(disjoint: Intervals, starts: ArrayLike, ends: ArrayLike) -> NDArray[np.int64]:
    """How much of each window [starts[i], ends[i]) a disjoint set covers, of shape (n,).

    Windows may overlap one another; one that ends before it starts counts as empty.
    """
    first = np.asarray(starts, np.int64)
    last = np.maximum(np.asarray(ends, np.int64), first)
    return _covered_before(disjoint, last) - _covered_before(disjoint, first)


def containing(starts: NDArray[np.int64], ends: NDArray[np.int64], times: ArrayLike) -> NDArray[np.int64]:
    """Index of the disjoint sorted interval [starts[i], ends[i]) that holds each time, -1 where none does."""
    times = np.asarray(times, np.int64)
    if len(starts) == 0:
        return np.full(times.shape, -1, np.int64)
    index = np.searchsorted(starts, times, side="right") - 1
    return np.where((index >= 0) & (times < ends[index]), index, -1)


def _covered_before(disjoint: Intervals, times: NDArray[np.int64]) -> NDArray[np.int64]:
    if len(disjoint) == 0:
        return np.zeros(times.shape, np.int64)
    lengths = disjoint[:, 1] - disjoint[:, 0]
    before = np.r_[0, np.cumsum(lengths)]
    index = np.searchsorted(disjoint[:, 0], times, side="right")
    running = np.clip(times - disjoint[index - 1, 0], 0, lengths[index - 1])
    return np.where(index > 0, before[index - 1] + running, 0)
