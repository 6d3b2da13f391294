"""A long trace in chapters: whole iterations are measured and let go of while the rest is still to be read.

Most files are more or less in order of time, which keeps memory bounded. The numbers do not rest on it: a chapter
ends only where nothing reaches across, and whatever turns up later and belongs to one that has ended is noticed, so
that the file can be read again, and whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from trisect.trace.attribution import called_in_step, launch_rows
from trisect.trace.event_reader import Reader
from trisect.trace.nested import absorbed_too_soon
from trisect.trace.recording import Column, Recording
from trisect.trace.times import timed_launches

ROWS = 1 << 18
"""Events that are kept before a chapter is sought; half of them stay, since files are in no strict order."""

TRIALS = 8
"""Places at which a chapter may end that are looked at before more is read."""

_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class OutOfOrderError(Exception):
    """A file that cannot be measured in chapters."""


class _End(NamedTuple):
    """Where a chapter ended."""

    host_ns: int  # nothing of the host comes before it any more
    device_ns: int  # nothing of the device
    correlation: int  # no id up to this one
    unanswered: Column  # ids of launches beyond that, which have left no device activity


def chunks(
    reader: Reader, is_iteration: Callable[[str], bool], wanted: Callable[[str], bool], whole: bool
) -> Iterator[Recording]:
    """The file as timelines one after another, each of whole iterations; only one if `whole`.

    Args:
        reader: of the file.
        is_iteration: whether an annotation of this name is an iteration.
        wanted: whether annotations of this name are needed.
        whole: also keeps operators of the host that lie inside others, which otherwise may be left out.

    Raises:
        TrisectError: as Reader.batches; an event without a usable time or duration.
        OutOfOrderError: it cannot be told in chapters; read it whole.
    """
    timeline = Recording(wanted, absorb=not whole)
    end, enough = _End(_LEAST, _LEAST, -1, np.empty(0, np.int64)), ROWS
    for batch in reader.batches():
        timeline.add(batch, reader)
        if whole or len(timeline) < enough:
            continue
        moments = _moments(timeline)
        time_ns = _place_to_end(timeline, moments, is_iteration, end)
        if time_ns is None:
            enough = 2 * len(timeline)
            continue
        _check_order(timeline, end)
        chapter, timeline = timeline.split(time_ns, moments)
        end = _end(chapter, time_ns, end)
        yield chapter
        enough = len(timeline) + ROWS // 2
    timeline.events += reader.passed_over
    timeline.repairs.update(reader.repairs)
    _check_order(timeline, end)
    yield timeline


def _moments(timeline: Recording) -> Column:
    """When each piece of device activity was launched; its start where no launch is known."""
    launches = timed_launches(timeline, Counter())
    row = launch_rows(launches, timeline.device["correlation"])
    return np.where(row >= 0, np.append(launches.start_ns, 0)[row], timeline.device["start_ns"])


def _place_to_end(
    timeline: Recording, moments: Column, is_iteration: Callable[[str], bool], earlier: _End
) -> int | None:
    """A late start of an iteration, with half of the work behind it, that nothing reaches across.

    Annotations do not count for that, since Kineto writes all of them before any device activity.
    """
    work = np.concatenate((moments, timeline.launches["start_ns"], timeline.host["start_ns"]))
    starts = sorted(mark.start_ns for mark in timeline.marks if is_iteration(mark.name))[1:]
    half = np.median(work) if len(work) else _LEAST
    latest = [start_ns for start_ns in starts if start_ns <= half][-TRIALS:]
    return next((start_ns for start_ns in reversed(latest) if _is_clean(timeline, moments, start_ns, earlier)), None)


def _is_clean(timeline: Recording, moments: Column, time_ns: int, earlier: _End) -> bool:
    before, after = timeline.split(time_ns, moments)
    return (
        not _comes_late(after, _end(before, time_ns, earlier))
        and (before.host["start_ns"] + before.host["dur_ns"]).max(initial=_LEAST) <= time_ns
        and all(mark.end_ns <= time_ns for mark in before.marks)
        and (called_in_step(before) is not False or not before.host["c10d"].any())
    )


def _end(chapter: Recording, time_ns: int, earlier: _End) -> _End:
    """Where a chapter ends whose last iteration is followed by one that starts at `time_ns`."""
    device = chapter.device
    end_ns = (device["start_ns"] + np.maximum(device["dur_ns"], 0)).max(initial=earlier.device_ns)
    correlation = device["correlation"].max(initial=earlier.correlation)
    launched = np.concatenate((earlier.unanswered, chapter.launches["correlation"]))
    return _End(time_ns, int(end_ns), int(correlation), launched[launched > correlation])


def _check_order(timeline: Recording, end: _End) -> None:
    """Raises OutOfOrderError if anything belongs to a chapter that has ended, or to an operator that is not kept."""
    late = absorbed_too_soon(timeline.host)
    if end.host_ns > _LEAST:
        marks = [mark.start_ns for mark in timeline.marks]
        starts = (_moments(timeline), timeline.launches["start_ns"], timeline.host["start_ns"], marks)
        late |= any(np.min(start_ns, initial=_MOST) < end.host_ns for start_ns in starts) or _comes_late(timeline, end)
    if late:
        raise OutOfOrderError


def _comes_late(timeline: Recording, end: _End) -> bool:
    """Whether device activity reaches into a chapter that has ended, in time or by an id."""
    device = timeline.device
    ids = np.concatenate((device["correlation"], timeline.launches["correlation"]))
    return bool(
        device["start_ns"].min(initial=_MOST) < end.device_ns
        or ids[ids >= 0].min(initial=_MOST) <= end.correlation
        or np.isin(device["correlation"], end.unanswered).any()
    )
