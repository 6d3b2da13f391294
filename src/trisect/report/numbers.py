"""Numbers as people read them: three digits, a unit, and the interval beside the value."""

from __future__ import annotations

import math
from collections.abc import Callable

Form = Callable[..., str]
"""A value as text with its unit; a second argument is the value whose unit to use."""

MISSING = "-"
"""Shown where a table holds no number."""

_SECONDS = ((1.0, "s"), (1e3, "ms"), (1e6, "µs"))
_BYTES = ((1.0, "B"), (1e-3, "kB"), (1e-6, "MB"), (1e-9, "GB"), (1e-12, "TB"))


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


def seconds(value: float, like: float | None = None) -> str:
    """A duration given in seconds, in s, ms or µs: the unit that keeps it short, or that keeps `like` short."""
    if math.isnan(value):
        return MISSING
    factor, unit = time_unit(value if like is None else like)
    return f"{digits(value * factor)} {unit}"


def time_unit(value: float) -> tuple[float, str]:
    """The unit that keeps a duration given in seconds short, and how many of it make a second."""
    size_ = abs(value)
    return next((pair for pair in _SECONDS if size_ * pair[0] >= 0.9995), _SECONDS[-1 if size_ else 0])


def percent(value: float, like: float | None = None) -> str:
    """A share (1 is 100 %) in percent; one decimal below 10 %."""
    if math.isnan(value):
        return MISSING
    shown = 100 * value
    return f"{shown:.1f} %" if 0 < abs(shown) < 9.95 else f"{shown:.0f} %"


def signed_percent(value: float, unknown: str = MISSING) -> str:
    """A relative error with its sign, without one where it rounds to nothing; `unknown` for NaN."""
    if math.isnan(value):
        return unknown
    if abs(value) < 5e-4:
        return "0 %"
    return f"{'+' if value > 0 else ''}{percent(value)}"


def points(value: float, like: float | None = None) -> str:
    """A difference of two shares (1 is 100 %), in percentage points."""
    return MISSING if math.isnan(value) else f"{100 * value:.1f} points"


def times(value: float, like: float | None = None) -> str:
    """A factor."""
    return MISSING if math.isnan(value) else f"{digits(value)}x"


def size(value: float, like: float | None = None) -> str:
    """Bytes, with a decimal prefix: the one that keeps it, or `like`, short."""
    if math.isnan(value):
        return MISSING
    size_ = abs(value if like is None else like)
    factor, unit = next((pair for pair in _BYTES if size_ * pair[0] < 999.5), _BYTES[-1])
    return f"{digits(value * factor)} {unit}"


def interval(value: float, lo: float, hi: float, form: Form) -> str:
    """The ends of an interval beside its value, in the value's unit, which is left out; "" where unknown."""
    if math.isnan(lo) or math.isnan(hi):
        return ""
    unit = form(value).lstrip("-+.e0123456789")
    return " to ".join(form(end, value).removesuffix(unit) for end in (lo, hi))


def listed(items: list[str]) -> str:
    """Items as a list in a sentence: "1, 2 and 4"."""
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))
