"""A long trace in chunks: whole iterations are measured and freed while the rest is still to be read.

This bounds memory because most files are roughly in order of time. The numbers do not rest on that order: a chunk
ends only where no work reaches across, and an event that comes later but belongs to an ended chunk is noticed, so
that the file is read again as a whole.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from trisect.trace.attribution import called_in_order, launch_rows
from trisect.trace.event_reader import Reader
from trisect.trace.nested_operators import absorbed_too_soon
from trisect.trace.recording import Column, Recording
from trisect.trace.time_checks import timed_launches

ROWS = 1 << 18
"""Events held before the end of a chunk is looked for; half of them stay, since files are in no strict order."""

TRIALS = 8
"""Possible ends of a chunk that are tried before more is read."""

_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class OutOfOrderError(Exception):
    """A file that cannot be measured in chunks."""


class _End(NamedTuple):
    """Where a chunk ended."""

    host_ns: int  # no event of the host may start before this any more
    device_ns: int  # nor device activity before this
    correlation: int  # nor may a correlation id up to this one come again
    pending: Column  # ids of launches above that one whose device activity has not come


def chunks(
    reader: Reader, is_iteration: Callable[[str], bool], wanted: Callable[[str], bool], whole: bool
) -> Iterator[Recording]:
    """The file as recordings one after another, each of whole iterations; only one if `whole`.

    Args:
        reader: of the file.
        is_iteration: whether an annotation of this name is an iteration.
        wanted: whether annotations of this name are needed.
        whole: also keeps operators of the host that lie inside others, which otherwise may be left out.

    Raises:
        TrisectError: as Reader.batches; an event without a usable time or duration.
        OutOfOrderError: it cannot be measured in chunks; read it whole.
    """
    recording = Recording(wanted, absorb=not whole)
    end, enough = _End(_LEAST, _LEAST, -1, np.empty(0, np.int64)), ROWS
    for batch in reader.batches():
        recording.add(batch, reader)
        if whole or len(recording) < enough:
            continue
        launch_ns = _launch_times(recording)
        time_ns = _latest_end(recording, launch_ns, is_iteration, end)
        if time_ns is None:
            enough = 2 * len(recording)
            continue
        _check_order(recording, end)
        chunk, recording = recording.split(time_ns, launch_ns)
        end = _end(chunk, time_ns, end)
        yield chunk
        enough = len(recording) + ROWS // 2
    recording.events += reader.filtered_out
    recording.repairs.update(reader.repairs)
    _check_order(recording, end)
    yield recording


def _launch_times(recording: Recording) -> Column:
    """When each piece of device activity was launched; its start where no launch is known."""
    launches = timed_launches(recording, Counter())
    row = launch_rows(launches, recording.device["correlation"])
    return np.where(row >= 0, np.append(launches.start_ns, 0)[row], recording.device["start_ns"])


def _latest_end(
    recording: Recording, launch_ns: Column, is_iteration: Callable[[str], bool], earlier: _End
) -> int | None:
    """The start of an iteration, with about half of the work before it, that no work reaches across; the latest one.

    Annotations do not count for that, since Kineto writes all of them before any device activity.
    """
    work = np.concatenate((launch_ns, recording.launches["start_ns"], recording.host["start_ns"]))
    starts = sorted(one.start_ns for one in recording.annotations if is_iteration(one.name))[1:]
    half = np.median(work) if len(work) else _LEAST
    latest = [start_ns for start_ns in starts if start_ns <= half][-TRIALS:]
    return next((start_ns for start_ns in reversed(latest) if _is_clean(recording, launch_ns, start_ns, earlier)), None)


def _is_clean(recording: Recording, launch_ns: Column, time_ns: int, earlier: _End) -> bool:
    before, after = recording.split(time_ns, launch_ns)
    return (
        not _comes_late(after, _end(before, time_ns, earlier))
        and (before.host["start_ns"] + before.host["dur_ns"]).max(initial=_LEAST) <= time_ns
        and all(one.end_ns <= time_ns for one in before.annotations)
        and (called_in_order(before) is not False or not before.host["c10d"].any())
    )


def _end(chunk: Recording, time_ns: int, earlier: _End) -> _End:
    """Where a chunk ends whose last iteration is followed by one that starts at `time_ns`."""
    device = chunk.device
    end_ns = (device["start_ns"] + np.maximum(device["dur_ns"], 0)).max(initial=earlier.device_ns)
    correlation = device["correlation"].max(initial=earlier.correlation)
    launched = np.concatenate((earlier.pending, chunk.launches["correlation"]))
    return _End(time_ns, int(end_ns), int(correlation), launched[launched > correlation])


def _check_order(recording: Recording, end: _End) -> None:
    """Raises OutOfOrderError if an event belongs to a chunk that has ended, or to an operator that was left out."""
    late = absorbed_too_soon(recording.host)
    if end.host_ns > _LEAST:
        annotations = [one.start_ns for one in recording.annotations]
        starts = (_launch_times(recording), recording.launches["start_ns"], recording.host["start_ns"], annotations)
        late |= any(np.min(start_ns, initial=_MOST) < end.host_ns for start_ns in starts) or _comes_late(recording, end)
    if late:
        raise OutOfOrderError


def _comes_late(recording: Recording, end: _End) -> bool:
    """Whether device activity reaches into a chunk that has ended, in time or by an id."""
    device = recording.device
    ids = np.concatenate((device["correlation"], recording.launches["correlation"]))
    return bool(
        device["start_ns"].min(initial=_MOST) < end.device_ns
        or ids[ids >= 0].min(initial=_MOST) <= end.correlation
        or np.isin(device["correlation"], end.pending).any()
    )
