"""One chunk of a rank's trace to the rows that it adds to the tables: work attributed to iterations and sections."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from trisect.results.tables import OUTSIDE
from trisect.trace import attribution
from trisect.trace.events import MISSING_NS, Header
from trisect.trace.intervals import Intervals, as_intervals, containing, covered, union
from trisect.trace.recording import Column, Recording
from trisect.trace.time_checks import Device, Launches, Refuse, device_activity, timed_launches
from trisect.trace.windows import Windows, find_iterations, find_sections

LOST_SHARE = 0.01
"""An iteration is left out if more than this share of its kernel launches left no kernel."""


class Skipped(NamedTuple):
    """An iteration that is left out: kernel launches, and those of them that left no kernel."""

    iteration: int
    lost: int
    launched: int


@dataclass(frozen=True)
class MeasuredChunk:
    """What one chunk adds. Times lack the file's base time."""

    sections: dict[str, Any]  # columns as in tables.SECTIONS, without the rank
    collectives: dict[str, Any]  # columns as in tables.COLLECTIVES, without the rank
    iterations: list[int]
    skipped: list[Skipped]  # iterations left out
    device_ns: int
    unattributed_ns: int
    on_device: bool  # whether there is device activity, so that the host's is not measured
    by_order: bool  # whether iterations are numbered by order, for lack of numbers of their own
    in_order: bool | None  # whether each collective of the host is attributed by its call; None where there are none
    thread: int  # that annotates, where the host computes, else -1
    uncounted_threads: frozenset[int]  # where the host computes, those whose operators are not counted as compute
    calls: bool  # whether operators of the host call torch.distributed
    enqueues: bool  # whether the host enqueues device communication
    communicates: bool  # whether the device communicates


def measure(
    recording: Recording,
    header: Header,
    sections: Sequence[str] | None,
    iteration: str,
    first: int,
    refuse: Refuse,
) -> MeasuredChunk:
    """Measure a chunk, whose iterations are numbered from `first` on where they have no numbers.

    Raises:
        TrisectError: annotations or collectives are missing, impossible, or overlap.
    """
    repairs = recording.repairs
    iterations = find_iterations(recording, iteration, first, repairs, refuse)
    windows = find_sections(recording, iterations, sections, repairs, refuse)
    device = device_activity(recording, repairs, refuse)
    launches = timed_launches(recording, repairs)
    on_device = len(device.start_ns) > 0
    if on_device:
        work = _device_work(recording, device, launches, windows, header)
    else:
        compute = attribution.host_compute(recording, iterations.thread, repairs)
        work = _Work(compute, windows.start_ns, windows.end_ns, [], np.empty(0, np.int64))
    collectives = work.collectives + attribution.host_collectives(recording, header, repairs, refuse)
    skipped = _lossy_iterations(launches, device, iterations)
    return MeasuredChunk(
        _section_columns(iterations, windows, work, skipped),
        _collective_columns(iterations, windows, work, collectives, skipped),
        iterations.numbers,
        list(skipped.values()),
        *_device_time(device, work, iterations, skipped),
        on_device=on_device,
        by_order=iterations.names[0] == iteration,
        in_order=attribution.called_in_order(recording),
        thread=-1 if on_device else iterations.thread,
        uncounted_threads=frozenset() if on_device else attribution.uncounted_threads(recording, iterations.thread),
        calls=bool(recording.host["c10d"].any()),
        enqueues=attribution.enqueues(recording),
        communicates=bool(recording.communication),
    )


@dataclass(frozen=True)
class _Work:
    """What was done in the windows: compute of the whole rank, and one span per section."""

    compute: Intervals
    span_start_ns: Column
    span_end_ns: Column
    collectives: list[attribution.Collective]
    launch_ns: Column  # of device activity


def _device_work(recording: Recording, device: Device, launches: Launches, windows: Windows, header: Header) -> _Work:
    """Spans from the first to the last device activity that was launched in the section, of either kind."""
    launched = attribution.launches_of(launches, device)
    launch_ns = launched.time_ns
    section = containing(windows.start_ns, windows.end_ns, launch_ns)
    start_ns = np.full(len(windows.names), np.iinfo(np.int64).max)
    end_ns = np.full(len(windows.names), MISSING_NS)
    np.minimum.at(start_ns, section[section >= 0], device.start_ns[section >= 0])
    np.maximum.at(end_ns, section[section >= 0], device.end_ns[section >= 0])
    idle = start_ns > end_ns  # nothing was launched in it: a span of no length
    start_ns[idle] = end_ns[idle] = windows.start_ns[idle]
    communicates = device.kernel >= 0
    compute = union(as_intervals(device.start_ns[~communicates], device.end_ns[~communicates]))
    collectives = attribution.device_collectives(recording, device, launched, header)
    return _Work(compute, start_ns, end_ns, collectives, launch_ns)


def _occurrences(windows: Windows) -> list[int]:
    """0, 1, ... for the windows of one name within one iteration."""
    seen: Counter[tuple[int, str]] = Counter()
    occurrences = []
    for key in zip(windows.numbers, windows.names, strict=True):
        occurrences.append(seen[key])
        seen[key] += 1
    return occurrences


def _section_columns(iterations: Windows, windows: Windows, work: _Work, skipped: dict[int, Skipped]) -> dict[str, Any]:
    kept = [index for index, iteration in enumerate(windows.numbers) if iteration not in skipped]
    occurrences = _occurrences(windows)
    start_ns, end_ns = work.span_start_ns[kept], work.span_end_ns[kept]
    return {
        "iteration": [iterations.numbers[windows.numbers[index]] for index in kept],
        "section": [windows.names[index] for index in kept],
        "occurrence": [occurrences[index] for index in kept],
        "start_ns": start_ns,
        "end_ns": end_ns,
        "busy_ns": covered(work.compute, start_ns, end_ns),
    }


def _collective_columns(
    iterations: Windows,
    windows: Windows,
    work: _Work,
    collectives: list[attribution.Collective],
    skipped: dict[int, Skipped],
) -> dict[str, Any]:
    collectives = sorted(collectives, key=lambda one: (one.start_ns, one.end_ns))
    start_ns = np.array([one.start_ns for one in collectives], np.int64)
    end_ns = np.array([one.end_ns for one in collectives], np.int64)
    launch_ns = np.array([one.launch_ns for one in collectives], np.int64)
    section = containing(windows.start_ns, windows.end_ns, launch_ns)
    moment = np.where(launch_ns == MISSING_NS, start_ns, launch_ns)
    # What runs between two iterations goes to the earlier one: the barrier that closes it.
    iteration = np.searchsorted(iterations.start_ns, moment, side="right") - 1
    iteration[section >= 0] = np.asarray(windows.numbers, np.int64)[section[section >= 0]]
    hidden_ns = end_ns - start_ns - _exposed(work, section, start_ns, end_ns)
    kept = [index for index, of in enumerate(iteration.tolist()) if of >= 0 and of not in skipped]
    names, occurrences = [*windows.names, OUTSIDE], [*_occurrences(windows), 0]  # section -1 is the last
    return {
        "iteration": [iterations.numbers[iteration[index]] for index in kept],
        "section": [names[section[index]] for index in kept],
        "occurrence": [occurrences[section[index]] for index in kept],
        "group": [collectives[index].group for index in kept],
        "seq": [collectives[index].seq for index in kept],
        "op": [collectives[index].op for index in kept],
        "bytes": [collectives[index].payload_bytes for index in kept],
        "group_size": [collectives[index].group_size for index in kept],
        "start_ns": start_ns[kept],
        "end_ns": end_ns[kept],
        "hidden_ns": hidden_ns[kept],
    }


def _exposed(work: _Work, section: Column, start_ns: Column, end_ns: Column) -> Column:
    """Per collective, by start: its time in the span of its section, under no compute and no earlier collective of it.

    So the exposed times of one section overlap neither one another nor compute, and add up.
    """
    within = section >= 0
    start, end = start_ns.copy(), end_ns.copy()
    start[within] = np.maximum(start[within], work.span_start_ns[section[within]])
    end[within] = np.minimum(end[within], work.span_end_ns[section[within]])
    by_section = np.argsort(section, kind="stable")
    for here in np.split(by_section, np.flatnonzero(np.diff(section[by_section])) + 1):
        earlier = np.r_[MISSING_NS, np.maximum.accumulate(end[here])[:-1]]
        start[here] = np.maximum(start[here], earlier[: len(here)])
    return np.maximum(end - start, 0) - covered(work.compute, start, end)


def _lossy_iterations(launches: Launches, device: Device, iterations: Windows) -> dict[int, Skipped]:
    """Iterations to leave out, by index: the profiler loses kernels, mostly in the first iterations."""
    launched, lost = attribution.lost_kernels(launches, device, iterations)
    return {
        int(index): Skipped(iterations.numbers[index], int(lost[index]), int(launched[index]))
        for index in np.flatnonzero(lost > LOST_SHARE * launched)
    }


def _device_time(device: Device, work: _Work, iterations: Windows, skipped: dict[int, Skipped]) -> tuple[int, int]:
    """Device activity within the iterations that are kept, and the part of it without a launch, in ns."""
    launched = work.launch_ns != MISSING_NS
    moment = np.where(launched, work.launch_ns, device.start_ns)
    iteration = containing(iterations.start_ns, iterations.end_ns, moment)
    kept = (iteration >= 0) & ~np.isin(iteration, list(skipped))
    dur_ns = device.end_ns - device.start_ns
    return int(dur_ns[kept].sum()), int(dur_ns[kept & ~launched].sum())
