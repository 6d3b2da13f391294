"""Impossible times: events that are dropped or shortened, and counted, and events that are refused.

Device work of one stream runs one piece after another, so none can last into the next. A time of zero or a negative
duration means that the profiler has no record.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trisect.errors import TrisectError
from trisect.trace.recording import Annotation, Column, Recording

LONGEST_EVENT_NS = 30 * 24 * 3600 * 1_000_000_000
"""Thirty days: what lasts longer is an overflow."""

ROUNDING_NS = 1_000
"""Older traces hold whole microseconds, in which two kernels of a stream may seem to overlap by one."""

Refuse = Callable[[str, Annotation | None], TrisectError]
"""Makes the error for a reason and the event it concerns, if it is one event."""


@dataclass(frozen=True)
class Device:
    """Device activity, one array element each, ordered by stream and then by start."""

    start_ns: Column
    end_ns: Column
    correlation: Column
    kernel: Column  # place in Recording.communication of those that communicate, else -1


@dataclass(frozen=True)
class Launches:
    """Calls that may start device work, one array element each; `kernel` is 1 for those that start one kernel."""

    start_ns: Column
    thread: Column
    correlation: Column
    kernel: Column


def device_activity(recording: Recording, repairs: Counter[str], refuse: Refuse) -> Device:
    """Device activity without duplicates and with possible durations.

    Raises:
        TrisectError: a collective has no time, or a duration that cannot be repaired.
    """
    columns = recording.device
    stream, start_ns, dur_ns = columns["stream"], columns["start_ns"], columns["dur_ns"]
    order = np.lexsort((columns["correlation"], dur_ns, start_ns, stream))
    repeated = np.ones(len(order), bool)
    repeated[:1] = False
    for column in (stream, start_ns, dur_ns, columns["correlation"]):
        repeated[1:] &= column[order[1:]] == column[order[:-1]]
    _count(repairs, duplicated_event=repeated.sum())
    untimed = (start_ns[order] == 0) & ~repeated
    for at in order[untimed & (columns["kernel"][order] >= 0)][:1]:
        kernel = recording.communication[columns["kernel"][at]]
        raise refuse(f"collective {kernel.name!r} has no timestamp; record the trace again", kernel)
    _count(repairs, zero_timestamp=untimed.sum())
    order = order[~repeated & ~untimed]
    end_ns = _possible_ends(recording, order, repairs, refuse)
    return Device(start_ns[order], end_ns, columns["correlation"][order], columns["kernel"][order])


def _possible_ends(recording: Recording, order: Column, repairs: Counter[str], refuse: Refuse) -> Column:
    stream, start_ns, dur_ns = (recording.device[name][order] for name in ("stream", "start_ns", "dur_ns"))
    for at in order[(dur_ns < 0) & (recording.device["kernel"][order] >= 0)][:1]:
        kernel = recording.communication[recording.device["kernel"][at]]
        raise refuse(f"collective {kernel.name!r} has a negative duration; record the trace again", kernel)
    end_ns = start_ns + np.maximum(dur_ns, 0)
    follows = stream[1:] == stream[:-1]
    too_long = np.r_[follows & (end_ns[:-1] > start_ns[1:] + ROUNDING_NS), False][: len(order)]
    end_ns[:-1] = np.where(too_long[:-1], start_ns[1:], end_ns[:-1])
    _count(repairs, negative_duration=(dur_ns < 0).sum(), impossible_duration=too_long.sum())
    endless = np.flatnonzero(end_ns - start_ns > LONGEST_EVENT_NS)
    if len(endless):
        raise refuse(f"{len(endless)} device events last over 30 days, nothing follows them; record again", None)
    return end_ns


def host_operations(recording: Recording, repairs: Counter[str]) -> tuple[Column, Column, Column, Column]:
    """Operators of the host that have a time: start_ns, end_ns, thread, c10d. An impossible duration becomes 0."""
    columns = recording.host
    timed = columns["start_ns"] != 0
    start_ns, dur_ns, thread, c10d = (columns[name][timed] for name in ("start_ns", "dur_ns", "thread", "c10d"))
    possible = (dur_ns >= 0) & (dur_ns <= LONGEST_EVENT_NS)
    _count(repairs, zero_timestamp=(~timed).sum(), impossible_duration=(~possible).sum())
    return start_ns, start_ns + np.where(possible, dur_ns, 0), thread, c10d


def timed_launches(recording: Recording, repairs: Counter[str]) -> Launches:
    """The launches that have a time."""
    columns = recording.launches
    timed: Any = columns["start_ns"] != 0
    _count(repairs, zero_timestamp=(~timed).sum())
    if timed.all():
        timed = slice(None)  # a view, to save memory
    return Launches(*(columns[name][timed] for name in ("start_ns", "thread", "correlation", "kernel")))


def usable_annotations(
    recording: Recording, wanted: Callable[[str], bool], repairs: Counter[str], refuse: Refuse
) -> list[Annotation]:
    """The annotations of wanted names by start, without duplicates.

    Raises:
        TrisectError: one of them has no time or an impossible duration.
    """
    found = [one for one in recording.annotations if wanted(one.name)]
    for one in found:
        if one.start_ns == 0 and not _recorded_within(recording, one):
            raise refuse(f"annotation {one.name!r} has no timestamp; record the trace again", one)
        if not 0 <= one.end_ns - one.start_ns <= LONGEST_EVENT_NS:
            raise refuse(f"annotation {one.name!r} has an impossible duration; record the trace again", one)
    unique = {(one.name, one.thread, one.start_ns, one.end_ns): one for one in reversed(found)}
    _count(repairs, duplicated_event=len(found) - len(unique))
    return sorted(unique.values(), key=lambda one: (one.start_ns, one.end_ns))


def _recorded_within(recording: Recording, one: Annotation) -> bool:
    """Whether anything starts after it does and before it ends, as in a trace whose times start at zero."""
    columns = [kind["start_ns"] for kind in (recording.device, recording.launches, recording.host)]
    columns.append(np.array([other.start_ns for other in recording.annotations], np.int64))
    return any(((start_ns > one.start_ns) & (start_ns < one.end_ns)).any() for start_ns in columns)


def one_at_a_time(annotations: list[Annotation], repairs: Counter[str]) -> list[Annotation]:
    """Collectives of the host, by start, with none lasting into the next of its thread."""
    following: dict[int, int] = {}
    cut: list[Annotation] = []
    for one in reversed(annotations):
        next_ns = following.get(one.thread, one.end_ns)
        following[one.thread] = one.start_ns
        if one.end_ns > next_ns + ROUNDING_NS:
            _count(repairs, impossible_duration=1)
            one = replace(one, end_ns=next_ns)
        cut.append(one)
    return cut[::-1]


def _count(repairs: Counter[str], **counts: int) -> None:
    repairs.update({name: int(count) for name, count in counts.items() if count})
