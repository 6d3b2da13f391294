"""Numbers as people read them."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from trisect.report import numbers


@pytest.mark.parametrize(
    ("form", "value", "shown"),
    [
        (numbers.seconds, 0.0, "0 s"),
        (numbers.seconds, 4e-9, "0.00400 µs"),
        (numbers.seconds, 1.234, "1.23 s"),
        (numbers.seconds, 0.03801, "38.0 ms"),
        (numbers.seconds, 0.99951, "1.00 s"),
        (numbers.seconds, 12.3e-6, "12.3 µs"),
        (numbers.seconds, 1234.5, "1234 s"),
        (numbers.seconds, math.nan, "-"),
        (numbers.percent, 0.5, "50 %"),
        (numbers.percent, 0.0305, "3.0 %"),
        (numbers.percent, 0.0994, "9.9 %"),
        (numbers.percent, 3.02, "302 %"),
        (numbers.percent, math.nan, "-"),
        (numbers.times, 2.184, "2.18x"),
        (numbers.times, 39.81, "39.8x"),
        (numbers.size, 805306368, "805 MB"),
        (numbers.size, 12, "12.0 B"),
        (numbers.size, 4e12, "4.00 TB"),
        (numbers.digits, 3.14e-7, "3.14e-07"),
        (numbers.digits, 99960.0, "99960"),
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
    ],
)
def test_interval_drops_the_unit_only_where_it_is_the_same(value: float, lo: float, hi: float, shown: str) -> None:
    assert numbers.interval(value, lo, hi, numbers.seconds) == shown


@pytest.mark.parametrize(
    ("items", "shown"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (list("abc"), "a, b and c")]
)
def test_listed(items: list[str], shown: str) -> None:
    assert numbers.listed(items) == shown
