"""Iterations and sections: the annotated windows that work is attributed to.

Work belongs to the section that was open, on the thread that annotates, when the work was launched. That
holds for launches from other threads too: a backward pass runs on autograd's thread while the caller waits
inside its section. Sections must therefore not overlap.
"""

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from trisect.config.fields import nearest
from trisect.trace.collective_names import is_of_collective
from trisect.trace.intervals import containing
from trisect.trace.recording import Annotation, Column, Recording
from trisect.trace.time_checks import ROUNDING_NS, Refuse, usable_annotations

SHOWN_NAMES = 12
"""Names of annotations that an error lists where none is close to the one that is missing."""

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
    """Whether an annotation is needed: an iteration, a section, a collective or the enqueueing of one."""
    names = frozenset(sections or ())
    return lambda text: text in names or iteration(text) or is_of_collective(text)


def find_iterations(recording: Recording, name: str, first: int, repairs: Counter[str], refuse: Refuse) -> Windows:
    """The annotations `name#k`, or those named exactly `name`, numbered by order from `first` on.

    Raises:
        TrisectError: there are none, two have one number, or two overlap.
    """
    numbered = _numbered(name)
    annotations = usable_annotations(recording, is_iteration(name), repairs, refuse)
    if not annotations:
        raise refuse(f"0 iterations: no annotation named '{name}#k' or {name!r}{meant(name, recording.names)}", None)
    matches = [numbered.fullmatch(one.name) for one in annotations]
    numbers = [int(match[1]) for match in matches if match] or list(range(first, first + len(annotations)))
    if len(numbers) < len(annotations):
        raise refuse(f"some annotations are named {name!r} and some '{name}#k'; name one kind", annotations[0])
    if len(set(numbers)) < len(numbers):
        twice, _ = Counter(numbers).most_common(1)[0]
        raise refuse(f"iteration {twice} is annotated twice", annotations[numbers.index(twice)])
    return _windows(annotations, numbers, refuse)


def find_sections(
    recording: Recording, iterations: Windows, names: Sequence[str] | None, repairs: Counter[str], refuse: Refuse
) -> Windows:
    """The section annotations that start within an iteration; without names, the iterations themselves.

    Raises:
        TrisectError: two sections overlap.
    """
    if names is None:
        every = list(range(len(iterations.numbers)))
        whole = [WHOLE_ITERATION] * len(every)
        return Windows(whole, every, iterations.start_ns, iterations.end_ns, iterations.thread)
    annotations = usable_annotations(recording, set(names).__contains__, repairs, refuse)
    starts = [one.start_ns for one in annotations]
    within = containing(iterations.start_ns, iterations.end_ns, starts)
    kept = [one for one, iteration in zip(annotations, within, strict=True) if iteration >= 0]
    return _windows(kept, [int(iteration) for iteration in within if iteration >= 0], refuse)


def _numbered(name: str) -> re.Pattern[str]:
    return re.compile(re.escape(name) + r"#(\d{1,18})")


def _windows(annotations: list[Annotation], numbers: list[int], refuse: Refuse) -> Windows:
    start_ns = np.array([one.start_ns for one in annotations], np.int64)
    end_ns = np.array([one.end_ns for one in annotations], np.int64)
    for one, following in pairwise(annotations):
        if following.start_ns < one.end_ns - ROUNDING_NS:
            raise refuse(f"annotation {following.name!r} overlaps {one.name!r}; name ones that follow", following)
    end_ns[:-1] = np.minimum(end_ns[:-1], start_ns[1:])
    return Windows(
        [one.name for one in annotations],
        numbers,
        start_ns,
        end_ns,
        annotations[0].thread if annotations else -1,
    )


def meant(name: str, known: Iterable[str]) -> str:
    """The end of an error about an annotation that is missing: the nearest of the known ones, and what lists all."""
    closest = difflib.get_close_matches(name, list(known), SHOWN_NAMES, cutoff=0)
    return f"{nearest(name, closest)} (trisect decompose --list shows all)"
