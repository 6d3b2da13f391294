"""Iterations and sections: the annotated windows that work is attributed to.

Work belongs to the section that was open, on the thread that annotates, when the work was launched. That
holds for launches from other threads too: a backward pass runs on autograd's thread while the caller waits
inside its section. Sections must therefore not overlap.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from trisect.trace.collective_names import is_enqueue, is_host_collective
from trisect.trace.intervals import containing
from trisect.trace.recording import NAMES, Annotation, Column, Recording
from trisect.trace.times import ROUNDING_NS, Refuse, usable_marks

WHOLE_ITERATION = "iteration"
"""Name of the one section of each iteration where the caller names none."""


@dataclass(frozen=True)
class Windows:
    """Annotated intervals in order of start; they do not overlap."""

    names: list[str]
    numbers: list[int]  # of iterations: their numbers; of sections: the index of their iteration
    start_ns: Column
    end_ns: Column
    thread: int


def is_iteration(name: str) -> Callable[[str], bool]:
    """Whether an annotation is an iteration: `name#k`, or exactly `name`."""
    numbered = _numbered(name)
    return lambda text: text == name or bool(numbered.fullmatch(text))


def is_measured(sections: Sequence[str] | None, iteration: Callable[[str], bool]) -> Callable[[str], bool]:
    """Whether an annotation counts: an iteration, a section, a collective or the enqueueing of one."""
    names = frozenset(sections or ())
    return lambda text: text in names or iteration(text) or is_host_collective(text) or is_enqueue(text)


def find_iterations(timeline: Recording, name: str, first: int, repairs: Counter[str], refuse: Refuse) -> Windows:
    """The annotations `name#k`, or those named exactly `name`, numbered by order from `first` on.

    Raises:
        TrisectError: there are none, two have one number, or two overlap.
    """
    numbered = _numbered(name)
    marks = usable_marks(timeline, is_iteration(name), repairs, refuse)
    if not marks:
        raise refuse(f"0 iterations: no annotation {name!r} or '{name}#k' among {some_names(timeline)}", None)
    matches = [numbered.fullmatch(mark.name) for mark in marks]
    numbers = [int(match[1]) for match in matches if match] or list(range(first, first + len(marks)))
    if len(numbers) < len(marks):
        raise refuse(f"some annotations are named {name!r} and some '{name}#k'; name one kind", marks[0])
    if len(set(numbers)) < len(numbers):
        twice, _ = Counter(numbers).most_common(1)[0]
        raise refuse(f"iteration {twice} is annotated twice", marks[numbers.index(twice)])
    return _windows(marks, numbers, refuse)


def find_sections(
    timeline: Recording, iterations: Windows, names: Sequence[str] | None, repairs: Counter[str], refuse: Refuse
) -> Windows:
    """The section annotations that start within an iteration; without names, the iterations themselves.

    Raises:
        TrisectError: two sections overlap.
    """
    if names is None:
        every = list(range(len(iterations.numbers)))
        whole = [WHOLE_ITERATION] * len(every)
        return Windows(whole, every, iterations.start_ns, iterations.end_ns, iterations.thread)
    marks = usable_marks(timeline, set(names).__contains__, repairs, refuse)
    starts = [mark.start_ns for mark in marks]
    within = containing(iterations.start_ns, iterations.end_ns, starts)
    kept = [mark for mark, iteration in zip(marks, within, strict=True) if iteration >= 0]
    return _windows(kept, [int(iteration) for iteration in within if iteration >= 0], refuse)


def _numbered(name: str) -> re.Pattern[str]:
    return re.compile(re.escape(name) + r"#(\d{1,18})")


def _windows(marks: list[Annotation], numbers: list[int], refuse: Refuse) -> Windows:
    start_ns = np.array([mark.start_ns for mark in marks], np.int64)
    end_ns = np.array([mark.end_ns for mark in marks], np.int64)
    for mark, following in pairwise(marks):
        if following.start_ns < mark.end_ns - ROUNDING_NS:
            raise refuse(f"annotation {following.name!r} overlaps {mark.name!r}; name ones that follow", following)
    end_ns[:-1] = np.minimum(end_ns[:-1], start_ns[1:])
    return Windows([mark.name for mark in marks], numbers, start_ns, end_ns, marks[0].thread if marks else -1)


def some_names(timeline: Recording) -> str:
    """Names of annotations, for an error that did not find the one it sought."""
    seen = list(timeline.names)
    return ", ".join(seen[:NAMES]) + (", ..." if len(seen) > NAMES else "") if seen else "no annotations at all"
