"""Numbers as people read them: three digits, a unit, and the interval beside the value."""

from __future__ import annotations

import math
from collections.abc import Callable

MISSING = "-"
"""Shown where a table holds no number."""


def digits(value: float, figures: int = 3) -> str:
    """A value to `figures` significant digits, and whole from there on; an exponent only past 0.001 and 100,000."""
    if math.isnan(value):
        return MISSING
    if value == 0:
        return "0"
    if not 1e-3 <= abs(value) < 1e5:
        return f"{value:.{figures - 1}e}"
    decimals = figures - 1 - math.floor(math.log10(abs(float(f"{value:.{figures - 1}e}"))))
    return f"{value:.{max(decimals, 0)}f}"


def seconds(value: float) -> str:
    """A duration given in seconds, with the unit that keeps it short: s, ms or µs."""
    if math.isnan(value) or value == 0 or abs(value) >= 0.9995:
        return MISSING if math.isnan(value) else f"{digits(value)} s"
    return f"{digits(value * 1e3)} ms" if abs(value) >= 0.9995e-3 else f"{digits(value * 1e6)} µs"


def percent(value: float) -> str:
    """A share (1 is 100 %) in percent; one decimal below 10 %."""
    if math.isnan(value):
        return MISSING
    shown = 100 * value
    return f"{shown:.1f} %" if 0 < abs(shown) < 9.95 else f"{shown:.0f} %"


def times(value: float) -> str:
    """A factor."""
    return MISSING if math.isnan(value) else f"{digits(value)}x"


def interval(value: float, lo: float, hi: float, form: Callable[[float], str]) -> str:
    """The ends of an interval beside its value: without their unit where it is the value's own; "" where unknown."""
    if math.isnan(lo) or math.isnan(hi):
        return ""
    unit = form(value).lstrip("-+.e0123456789")
    ends = [form(lo), form(hi)]
    if all(end.lstrip("-+.e0123456789") in (unit, "") for end in ends):
        ends = [end.removesuffix(unit) for end in ends]
    return " to ".join(ends)


def size(value: float) -> str:
    """Bytes, with a decimal prefix."""
    if math.isnan(value):
        return MISSING
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 999.5:
            return f"{digits(value)} {unit}"
        value /= 1000
    return f"{digits(value)} TB"


def listed(items: list[str]) -> str:
    """Items as a list in a sentence: "1, 2 and 4"."""
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))
