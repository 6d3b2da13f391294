"""Ranks and iterations in a sentence."""

from __future__ import annotations

from collections.abc import Iterable


def numbers(values: Iterable[int]) -> str:
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
    return _counted("rank", values)


def iterations(values: Iterable[int]) -> str:
    """`[3]` as "iteration 3"."""
    return _counted("iteration", values)


def _counted(noun: str, values: Iterable[int]) -> str:
    found = set(values)
    return f"{noun}{'s' if len(found) != 1 else ''} {numbers(found)}"
