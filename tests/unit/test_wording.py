"""Numbers as people read them."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from trisect import wording


@pytest.mark.parametrize(
    ("form", "value", "shown"),
    [
        (wording.seconds, 0.0, "0 s"),
        (wording.seconds, 4e-9, "0.00400 µs"),
        (wording.seconds, 1.234, "1.23 s"),
        (wording.seconds, 0.03801, "38.0 ms"),
        (wording.seconds, 0.99951, "1.00 s"),
        (wording.seconds, 12.3e-6, "12.3 µs"),
        (wording.seconds, 1234.5, "1234 s"),
        (wording.seconds, math.nan, "-"),
        (wording.percent, 0.5, "50 %"),
        (wording.percent, 0.0305, "3.0 %"),
        (wording.percent, 0.0994, "9.9 %"),
        (wording.percent, 3.02, "302 %"),
        (wording.percent, math.nan, "-"),
        (wording.times, 2.184, "2.18x"),
        (wording.times, 39.81, "39.8x"),
        (wording.size, 805306368, "805 MB"),
        (wording.size, 12, "12.0 B"),
        (wording.size, 4e12, "4.00 TB"),
        (wording.digits, 3.14e-7, "3.14e-07"),
        (wording.digits, 99960.0, "99960"),
    ],
)
def test_forms(form: Callable[[float], str], value: float, shown: str) -> None:
    assert form(value) == shown


@pytest.mark.parametrize(
    ("value", "lo", "hi", "shown"),
    [
        (0.174, 0.172, 0.175, "172 to 175"),
        (1.0, 0.99, 1.01, "0.990 to 1.01"),
        (1.0, math.nan, math.nan, ""),
        (0.002, 0.0, 0.004, "0 to 4.00"),
        (0.002, 0.001, math.inf, "1.00 or more"),
    ],
)
def test_interval_drops_the_unit_only_where_it_is_the_same(value: float, lo: float, hi: float, shown: str) -> None:
    assert wording.seconds.interval(value, lo, hi) == shown


@pytest.mark.parametrize(
    ("items", "shown"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (list("abc"), "a, b and c")]
)
def test_listed(items: list[str], shown: str) -> None:
    assert wording.listed(items) == shown


@pytest.mark.parametrize(
    ("values", "shown"),
    [([3], "rank 3"), ([0, 1], "ranks 0, 1"), ([2, 0, 1, 7], "ranks 0 to 2, 7"), (range(64), "ranks 0 to 63")],
)
def test_ranks(values: list[int], shown: str) -> None:
    assert wording.ranks(values) == shown


def test_plurals() -> None:
    assert [wording.counted(n, "line") for n in (0, 1, 1200)] == ["0 lines", "1 line", "1,200 lines"]
    assert [wording.counts(n, "GPU") for n in ([1], [2], [1, 2, 4])] == ["1 GPU", "2 GPUs", "1, 2 and 4 GPUs"]


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0123, "+1.2 %"), (-0.5, "-50 %"), (-1e-5, "0 %"), (math.nan, wording.NO_NUMBER)]
)
def test_signed_percent(value: float, shown: str) -> None:
    assert wording.signed_percent(value) == shown


def test_metric() -> None:
    assert [wording.metric(name) for name in ("span_s", "load_balance")] == ["span", "load balance"]
