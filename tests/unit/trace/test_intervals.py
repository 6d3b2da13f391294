"""Interval sets against the plain definition: sets of whole nanoseconds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trisect.trace import intervals

RAW = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=8)


def array(pairs):
    return np.array(pairs, np.int64).reshape(-1, 2)


def points(pairs):
    return {point for start, end in pairs for point in range(start, end)}


def is_disjoint_and_sorted(found):
    flat = found.ravel()
    return bool((found[:, 1] > found[:, 0]).all() and (np.diff(flat)[1::2] > 0).all())


@given(RAW)
def test_union(pairs):
    found = intervals.union(array(pairs))
    assert points(found.tolist()) == points(pairs)
    assert is_disjoint_and_sorted(found)


@given(RAW, RAW)
def test_covered(pairs, windows):
    found = intervals.covered(intervals.union(array(pairs)), array(windows)[:, 0], array(windows)[:, 1])
    assert found.tolist() == [len(points(pairs) & points([window])) for window in windows]


@given(RAW, st.lists(st.integers(-1, 41)))
def test_containing(pairs, times):
    disjoint = intervals.union(array(pairs))
    found = intervals.containing(disjoint[:, 0], disjoint[:, 1], times)
    for time, index in zip(times, found.tolist(), strict=True):
        assert (index >= 0) == (time in points(pairs))
        assert index < 0 or disjoint[index, 0] <= time < disjoint[index, 1]
