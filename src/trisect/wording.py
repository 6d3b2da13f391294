"""Numbers, units, plurals and lists as people read them; every message and page words them here."""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

NO_NUMBER = "-"
"""Shown where a table holds no number."""

_SECONDS = ((1.0, "s"), (1e3, "ms"), (1e6, "µs"))
_BYTES = ((1.0, "B"), (1e-3, "kB"), (1e-6, "MB"), (1e-9, "GB"), (1e-12, "TB"))


@dataclass(frozen=True)
class Form:
    """How values of one kind are worded: a number, then its unit."""

    split: Callable[[float, float], tuple[str, str]]
    """Both, for a value and the value whose unit to use."""

    def __call__(self, value: float, like: float | None = None) -> str:
        """A value with its unit, or with the one that keeps `like` short; NO_NUMBER for NaN."""
        return NO_NUMBER if math.isnan(value) else "".join(self.split(value, value if like is None else like))

    def interval(self, value: float, lo: float, hi: float) -> str:
        """The ends of an interval beside its value, in the value's unit, which is left out.

        "" where an end is unknown or both are one; "1.2 or more" where there is no upper end.
        """
        if math.isnan(lo) or math.isnan(hi) or lo == hi:
            return ""
        low, high = (self.split(end, value)[0] for end in (lo, hi))
        return f"{low} or more" if math.isinf(hi) else f"{low} to {high}"


def digits(value: float, figures: int = 3) -> str:
    """A value to `figures` significant digits, and whole from there on; an exponent only below 0.001."""
    if math.isnan(value):
        return NO_NUMBER
    if value == 0:
        return "0"
    if abs(value) < 1e-3:
        return f"{value:.{figures - 1}e}"
    if abs(value) >= 1e5:
        return f"{float(f'{value:.{figures - 1}e}'):,.0f}"
    decimals = figures - 1 - math.floor(math.log10(abs(float(f"{value:.{figures - 1}e}"))))
    return f"{value:.{max(decimals, 0)}f}"


def factor(value: float) -> str:
    """A factor: two decimals below 10, so that the factors of one figure have the same."""
    return f"{value:.2f}" if abs(value) < 9.995 else digits(value)


def time_unit(value: float) -> tuple[float, str]:
    """The unit that keeps a duration given in seconds short, and how many of it make a second."""
    size_ = abs(value)
    return next((pair for pair in _SECONDS if size_ * pair[0] >= 0.9995), _SECONDS[-1 if size_ else 0])


def _seconds(value: float, like: float) -> tuple[str, str]:
    scale, unit = time_unit(like)
    return digits(value * scale), f" {unit}"


def _size(value: float, like: float) -> tuple[str, str]:
    scale, unit = next((pair for pair in _BYTES if abs(like) * pair[0] < 999.5), _BYTES[-1])
    return digits(value * scale), f" {unit}"


def _rate(value: float, like: float) -> tuple[str, str]:
    number, unit = _size(1e9 * value, 1e9 * like)
    return number, f"{unit}/s"


def _percent(value: float, _: float) -> tuple[str, str]:
    shown = 100 * value
    return f"{shown:.1f}" if 0 < abs(shown) < 9.95 else f"{shown:.0f}", " %"


def _signed(value: float, like: float) -> tuple[str, str]:
    number, unit = _percent(value, like)
    return ("0" if abs(value) < 5e-4 else f"{'+' * (value > 0)}{number}"), unit


seconds = Form(_seconds)
"""A duration given in seconds, in s, ms or µs."""
size = Form(_size)
"""Bytes, with a decimal prefix."""
gb_per_s = Form(_rate)
"""A rate given in GB/s, with a decimal prefix."""
percent = Form(_percent)
"""A share (1 is 100 %) in percent; one decimal below 10 %."""
relative_error = Form(_signed)
"""The same with its sign, without one where it rounds to nothing."""
points = Form(lambda value, _: (f"{100 * value:.1f}", " points"))
"""A difference of two shares (1 is 100 %), in percentage points."""
times = Form(lambda value, _: (factor(value), "x"))
"""A factor, marked as one."""


def duration(seconds_: float) -> str:
    """A long duration given in seconds: "40 s", "12 minutes", "1.5 hours"."""
    if seconds_ < 90:
        return f"{seconds_:.0f} s"
    return f"{seconds_ / 60:.0f} minutes" if seconds_ < 5400 else f"{digits(seconds_ / 3600, 2)} hours"


def gib(bytes_: float) -> str:
    """Bytes as a number of GiB, without the unit."""
    return f"{bytes_ / 2**30:.1f}"


def signed_percent(value: float, unknown: str = NO_NUMBER) -> str:
    """A relative error as text; `unknown` for NaN."""
    return unknown if math.isnan(value) else relative_error(value)


def listed(items: Iterable[object]) -> str:
    """Items as a list in a sentence: "1, 2 and 4"."""
    words = [str(item) for item in items]
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def counted(count: int, noun: str) -> str:
    """A number of things: "1 rank", "2 ranks"."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def counts(values: Iterable[int], noun: str) -> str:
    """Several numbers of things: "1, 2 and 4 ranks"."""
    found = list(values)
    return f"{listed(found)} {noun}{'s' * (found != [1])}"


def metric(name: str) -> str:
    """A column's name in words: "load_balance" as "load balance", "span_s" as "span"."""
    return name.removesuffix("_s").replace("_", " ")


def upper_first(text: str) -> str:
    """With a capital, the rest as it is."""
    return text[:1].upper() + text[1:]


def unbroken(text: str) -> str:
    """With each number and its unit kept on one line."""
    return re.sub(r"(?<=\d) (?=[%\w])", "\u00a0", text)


def ranges(values: Iterable[int]) -> str:
    """`[0, 1, 2, 7]` as "0 to 2, 7"."""
    runs: list[list[int]] = []
    for value in sorted({int(value) for value in values}):
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    parts = [str(run[0]) if len(run) == 1 else f"{run[0]}{' to ' if len(run) > 2 else ', '}{run[-1]}" for run in runs]
    return ", ".join(parts)


def ranks(values: Iterable[int]) -> str:
    """`[0, 1, 2, 7]` as "ranks 0 to 2, 7"."""
    return _named("rank", values)


def iterations(values: Iterable[int]) -> str:
    """`[3]` as "iteration 3"."""
    return _named("iteration", values)


def _named(noun: str, values: Iterable[int]) -> str:
    found = set(values)
    return f"{noun}{'s' if len(found) != 1 else ''} {ranges(found)}"
