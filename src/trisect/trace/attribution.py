"""Attributes work to the section that launched it: device activity by its launch, the host's collectives by their call.

Work belongs to the section that was open when it was launched, whichever thread launched it: a backward pass runs on
autograd's thread while its caller waits inside the section.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np

from trisect.trace.collective_names import (
    UNKNOWN_OP,
    device_bytes,
    host_bytes,
    is_enqueue,
    is_host_collective,
    operation,
)
from trisect.trace.events import MISSING_NS, Header
from trisect.trace.intervals import Intervals, as_intervals, containing, union
from trisect.trace.nested_operators import calls_inside
from trisect.trace.recording import Annotation, Column, Recording
from trisect.trace.time_checks import Device, Launches, Refuse, host_operations, one_at_a_time, usable_annotations
from trisect.trace.windows import Windows


@dataclass(frozen=True)
class Collective:
    """One collective of one rank. `launch_ns` is MISSING where nothing launched it."""

    op: str
    payload_bytes: int
    group: str
    group_size: int
    seq: int
    start_ns: int
    end_ns: int
    launch_ns: int


@dataclass(frozen=True)
class Launched:
    """Of each piece of device activity: when and from which thread, MISSING where no launch has its correlation id."""

    time_ns: Column
    thread: Column


def launch_rows(launches: Launches, correlation: Column) -> Column:
    """Where in `launches` each id's launch is, -1 where none has it; of several with one id the first in time."""
    order = np.lexsort((launches.start_ns, launches.correlation))
    known = launches.correlation[order]
    at = np.searchsorted(known, correlation)
    found = (correlation >= 0) & (np.append(known, MISSING_NS)[at] == correlation)
    return np.where(found, np.append(order, -1)[at], -1)


def launches_of(launches: Launches, device: Device) -> Launched:
    """The launch of each piece of device activity."""
    row = launch_rows(launches, device.correlation)
    columns = (launches.start_ns, launches.thread)
    return Launched(*(np.where(row >= 0, np.append(column, MISSING_NS)[row], MISSING_NS) for column in columns))


def lost_kernels(launches: Launches, device: Device, iterations: Windows) -> tuple[Column, Column]:
    """Numbers per iteration: of kernel launches, and of those of them that left no kernel on the device."""
    kernel = launches.kernel == 1
    of = containing(iterations.start_ns, iterations.end_ns, launches.start_ns[kernel])
    lost = ~np.isin(launches.correlation[kernel], device.correlation)
    size = len(iterations.numbers)
    return np.bincount(of[of >= 0], minlength=size), np.bincount(of[(of >= 0) & lost], minlength=size)


def host_compute(recording: Recording, thread: int, repairs: Counter[str]) -> Intervals:
    """When the host computed: operators of the annotating thread and of autograd's threads.

    An operator that calls torch.distributed may wait in it, and so is not counted itself; operators inside it are.
    """
    start_ns, end_ns, threads, c10d = host_operations(recording, repairs)
    computing = np.isin(threads, [thread, *recording.autograd_threads]) & (c10d == 0)
    for one in np.unique(threads[c10d == 1]):
        calls = np.sort(start_ns[(threads == one) & (c10d == 1)])
        computing &= (threads != one) | (calls_inside(calls, start_ns, end_ns) == 0)
    return union(as_intervals(start_ns[computing], end_ns[computing]))


def device_collectives(recording: Recording, device: Device, launched: Launched, header: Header) -> list[Collective]:
    """NCCL kernels. What a kernel's own arguments do not say is taken from the annotation around its launch."""
    enqueues = _Enqueues(recording)
    found = []
    for index in np.flatnonzero(device.kernel >= 0):
        kernel = recording.communication[device.kernel[index]]
        launch_ns = int(launched.time_ns[index])
        around = enqueues.around(int(launched.thread[index]), launch_ns)
        names = [kernel.args.collective, around.name if around else "", kernel.name]
        op = next((op for name in names if (op := operation(name)) != UNKNOWN_OP), UNKNOWN_OP)
        size = kernel.args.group_size if kernel.args.group_size > 0 else group_size(header, kernel.args.group)
        payload = device_bytes(op, kernel.args)
        if payload < 0 and around:
            payload = host_bytes(op, around.args, size)
        times = int(device.start_ns[index]), int(device.end_ns[index]), launch_ns
        found.append(Collective(op, payload, kernel.args.group, size, kernel.args.seq, *times))
    return sorted(found, key=lambda collective: collective.start_ns)


def uncounted_threads(recording: Recording, thread: int) -> frozenset[int]:
    """Threads of the host whose operators are not counted as compute, as far as is known by now."""
    return frozenset(np.unique(recording.host["thread"]).tolist()) - recording.autograd_threads - {thread}


def called_in_order(recording: Recording) -> bool | None:
    """Whether the k-th call is the one of the k-th collective of the host; None where there is no collective.

    Workers take calls in order, so this holds unless the trace lacks some.
    """
    annotations = {(one.start_ns, one.end_ns, one.name, one.thread) for one in recording.annotations}
    starts = sorted(start_ns for start_ns, _, name, _ in annotations if is_host_collective(name))
    calls = _calls(recording)
    if not starts:
        return None
    return len(calls) == len(starts) and all(call <= start for call, start in zip(calls, starts, strict=True))


def host_collectives(recording: Recording, header: Header, repairs: Counter[str], refuse: Refuse) -> list[Collective]:
    """Collectives that ran on the host, such as gloo's, which run on its worker threads."""
    annotations = one_at_a_time(usable_annotations(recording, is_host_collective, repairs, refuse), repairs)
    calls = _calls(recording) if called_in_order(recording) else [one.start_ns for one in annotations]
    size = group_size(header)
    found = []
    for one, call in zip(annotations, calls, strict=True):
        op = operation(one.name)
        payload = host_bytes(op, one.args, size)
        found.append(Collective(op, payload, "", size, -1, one.start_ns, one.end_ns, int(call)))
    return found


def enqueues(recording: Recording) -> bool:
    """Whether the host enqueues communication of the device."""
    return any(is_enqueue(one.name) for one in recording.annotations)


def _calls(recording: Recording) -> list[int]:
    return sorted(recording.host["start_ns"][recording.host["c10d"] == 1].tolist())


def group_size(header: Header, group: str = "") -> int:
    """The size of a process group; of one without a name only if all of the job have the same, else -1."""
    sizes = header.distributed.group_sizes()
    if group in sizes:
        return sizes[group]
    one_of = set(sizes.values()) or {header.distributed.world_size or -1}
    return one_of.pop() if len(one_of) == 1 else -1


class _Enqueues:
    """Annotations of the host around the launches of NCCL kernels."""

    def __init__(self, recording: Recording) -> None:
        self._by_thread: dict[int, list[Annotation]] = defaultdict(list)
        for one in sorted(recording.annotations, key=lambda one: one.start_ns):
            if is_enqueue(one.name):
                self._by_thread[one.thread].append(one)

    def around(self, thread: int, launch_ns: int) -> Annotation | None:
        """The innermost one around a launch."""
        annotations = self._by_thread.get(thread, [])
        last = bisect_right(annotations, launch_ns, key=lambda one: one.start_ns)
        return next((one for one in reversed(annotations[:last][-4:]) if one.end_ns >= launch_ns), None)
