"""One rank's trace as columns: of every event only what the measurement needs, a few bytes each."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from trisect.trace.collectives import is_communication_kernel
from trisect.trace.events import MISSING, Args, Event
from trisect.trace.reader import Batch, Reader

Column = NDArray[Any]  # of integers
Mask = NDArray[np.bool_]

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
LAUNCH = ("cuda_runtime", "cuda_driver")
HOST = ("cpu_op",)
ANNOTATION = ("user_annotation",)

UNUSED = frozenset(
    (
        *("", "ac2g", "fwdbwd", "gpu_user_annotation", "python_function", "overhead", "Trace"),
        *("external_correlation", "cpu_instant_event", "cuda_sync", "cuda_event", "cuda_profiler_range"),
        *("collective_comm", "gpu_pm_counter", "glow_runtime", "hpu_op", "xpu_runtime", "xpu_driver"),
        *("mtia_runtime", "mtia_ccp_events", "mtia_workloadd", "mtia_insight"),
        *("privateuse1_runtime", "privateuse1_driver"),
    )
)
"""Kineto's other categories, which are read past. One that is in no list is counted, because damage makes such."""

_AUTOGRAD = "autograd::engine::evaluate_function"
_LAUNCHES_KERNEL = re.compile(r"^(cuda|hip|cu)\w*LaunchKernel|LaunchCooperativeKernel")


@dataclass(frozen=True)
class Mark:
    """An annotation of the host or a communication kernel (its thread is the stream): few enough to keep whole."""

    name: str
    thread: int
    start_ns: int
    end_ns: int
    args: Args
    place: tuple[int, int]  # offset of its batch, index in it


@dataclass(frozen=True)
class Chosen:
    """Complete events of one category in a batch."""

    batch: Batch
    rows: list[int]  # in the batch
    events: list[Event]
    start_ns: Column
    dur_ns: Column

    def names(self, wanted: Callable[[str], object]) -> set[str]:
        """The names for which `wanted` holds; it is asked once for each, however many events have it."""
        return {name for name in {event.name for event in self.events} if wanted(name)}


class Columns:
    """Named columns of integers, all of one length, grown a batch at a time; a smaller type saves memory."""

    def __init__(self, **types: type[np.signedinteger]) -> None:
        self._types = types
        self._parts: dict[str, list[Column]] = {name: [np.empty(0, kind)] for name, kind in types.items()}

    def append(self, **parts: Column | Mask | list[int]) -> None:
        """Add one part per column."""
        for name, column in self._parts.items():
            column.append(np.asarray(parts[name], self._types[name]))

    def __getitem__(self, name: str) -> Column:
        parts = self._parts[name]
        if len(parts) > 1:
            parts[:] = [np.concatenate(parts)]
        return parts[0]

    def __len__(self) -> int:
        return sum(map(len, next(iter(self._parts.values()))))


class Timeline:
    """What one file holds. Threads and streams are numbered as they appear; times lack the file's base time.

    Attributes:
        marks: annotations of the host, collectives of the host among them, in the file's order.
        device: device activity; `kernel` is the place in `communication` of those that are NCCL kernels, else -1.
        launches: calls that may start device work; `kernel` is 1 for those that start one kernel each.
        host: operators on the host; `c10d` is 1 for those of torch.distributed, `absorbed` for those that stand
            for the operators inside them, which are not kept.
    """

    def __init__(self, absorb: bool = True) -> None:
        self.events = 0
        self.repairs: Counter[str] = Counter()
        self.marks: list[Mark] = []
        self.device = Columns(
            start_ns=np.int64, dur_ns=np.int64, stream=np.int32, correlation=np.int64, kernel=np.int32
        )
        self.communication: list[Mark] = []
        self.launches = Columns(start_ns=np.int64, thread=np.int32, correlation=np.int64, kernel=np.int8)
        self.host = Columns(start_ns=np.int64, dur_ns=np.int64, thread=np.int32, c10d=np.int8, absorbed=np.int8)
        self._absorb = absorb
        self.autograd_threads: set[int] = set()
        self._threads, self._streams = _Numbers(), _Numbers()

    def add_device(self, chosen: Chosen) -> None:
        """Add kernels, copies and memsets."""
        events, streams = chosen.events, self._streams
        is_kernel = chosen.events[0].cat == "kernel"
        communicate = chosen.names(is_communication_kernel) if is_kernel else set()
        kernel = [-1] * len(events)
        for at, event in enumerate(events):
            if event.name in communicate or event.args.collective:
                kernel[at] = len(self.communication)
                self.communication.append(self._mark(chosen, at))
        self.device.append(
            start_ns=chosen.start_ns,
            dur_ns=chosen.dur_ns,
            stream=[streams[event.tid, event.pid] for event in events],
            correlation=[event.args.correlation for event in events],
            kernel=kernel,
        )

    def add_launches(self, chosen: Chosen) -> None:
        """Add calls of the CUDA runtime and driver."""
        launch, threads = chosen.names(_LAUNCHES_KERNEL.search), self._threads
        self.launches.append(
            start_ns=chosen.start_ns,
            thread=[threads[event.tid] for event in chosen.events],
            correlation=[event.args.correlation for event in chosen.events],
            kernel=[event.name in launch for event in chosen.events],
        )

    def add_host(self, chosen: Chosen) -> None:
        """Add operators of the host, those inside others of this batch left out."""
        events, start_ns, dur_ns = chosen.events, chosen.start_ns, chosen.dur_ns
        threads = np.array([self._threads[event.tid] for event in events], np.int64)
        of_autograd = [event.name.startswith(_AUTOGRAD) for event in events]
        self.autograd_threads.update(np.unique(threads[of_autograd]).tolist())
        c10d = np.array(["c10d" in event.name for event in events])
        absorbing = absorbed = np.zeros(len(events), bool)
        if self._absorb:
            absorbing, absorbed = _absorption(start_ns, dur_ns, threads, c10d)
        kept = ~absorbed
        self.host.append(
            start_ns=start_ns[kept],
            dur_ns=dur_ns[kept],
            thread=threads[kept],
            c10d=c10d[kept],
            absorbed=absorbing[kept],
        )

    def absorbed_too_soon(self) -> bool:
        """Whether an operator that stands for others turned out to call torch.distributed, so that they count."""
        thread, c10d, start_ns = (self.host[name] for name in ("thread", "c10d", "start_ns"))
        end_ns, absorbing = start_ns + self.host["dur_ns"], self.host["absorbed"] == 1
        calls_in = (
            calls_inside(np.sort(start_ns[(thread == one) & (c10d == 1)]), start_ns, end_ns)[
                absorbing & (thread == one)
            ]
            for one in np.unique(thread[c10d == 1])
        )
        return any((counts > 0).any() for counts in calls_in)

    def add_marks(self, chosen: Chosen) -> None:
        """Add annotations."""
        self.marks.extend(self._mark(chosen, at) for at in range(len(chosen.events)))

    def _mark(self, chosen: Chosen, at: int) -> Mark:
        event, start_ns = chosen.events[at], int(chosen.start_ns[at])
        end_ns = start_ns + int(chosen.dur_ns[at])
        args = event.args
        if args.dims:  # a view that would keep the whole batch in memory
            args = msgspec.structs.replace(args, dims=args.dims.copy(), types=args.types.copy())
        place = (chosen.batch.offset, chosen.rows[at])
        return Mark(event.name, self._threads[event.tid], start_ns, end_ns, args, place)


def calls_inside(calls_ns: Column, start_ns: Column, end_ns: Column) -> Column:
    """How many of the sorted times lie strictly within each interval."""
    before_end = np.searchsorted(calls_ns, end_ns, side="left")
    return np.maximum(before_end - np.searchsorted(calls_ns, start_ns, side="right"), 0)


def _absorption(start_ns: Column, dur_ns: Column, thread: Column, c10d: NDArray[np.bool_]) -> tuple[Mask, Mask]:
    """Which operators stand for those inside them, and which lie inside such a one.

    One stands for others if it calls no torch.distributed, and has ended when the last of its thread in this
    batch starts: in a file in order of time, no more can come inside it.
    """
    absorbing, absorbed = np.zeros(len(start_ns), bool), np.zeros(len(start_ns), bool)
    end_ns = start_ns + dur_ns
    for one in np.unique(thread):
        own = np.flatnonzero(thread == one)
        own = own[np.lexsort((-end_ns[own], start_ns[own]))]
        start, end = start_ns[own], end_ns[own]
        plain = ~c10d[own] & (calls_inside(start[c10d[own]], start, end) == 0)
        absorbing[own] = stands = plain & (end < start[-1])
        latest = np.maximum.accumulate(np.where(stands, end, MISSING))
        inside = ~c10d[own][1:] & (dur_ns[own][1:] >= 0) & (end[1:] <= latest[:-1])
        absorbed[own[1:]] = inside
    return absorbing, absorbed


class _Numbers(dict[object, int]):
    """0, 1, ... for threads (by id) and for streams (by id and device)."""

    def __missing__(self, key: object) -> int:
        self[key] = number = len(self)
        return number


def read_timeline(reader: Reader, absorb: bool = True) -> Timeline:
    """One file as columns, its times and durations as they were written.

    Args:
        reader: of the file.
        absorb: whether operators of the host inside others may be left out, to save memory.

    Raises:
        TrisectError: as Reader.batches; an event without a usable time or duration.
    """
    timeline = Timeline(absorb)
    sinks = {
        **dict.fromkeys(DEVICE, timeline.add_device),
        **dict.fromkeys(LAUNCH, timeline.add_launches),
        **dict.fromkeys(ANNOTATION, timeline.add_marks),
        **dict.fromkeys(HOST, timeline.add_host),
    }
    for batch in reader.batches():
        timeline.events += len(batch.events)
        rows: defaultdict[str, list[int]] = defaultdict(list)
        for row, event in enumerate(batch.events):
            rows[event.cat].append(row)
        for category, own in rows.items():
            if (sink := sinks.get(category)) is not None:
                if (chosen := _complete(reader, timeline, batch, own)).rows:
                    sink(chosen)
            elif category not in UNUSED:
                timeline.repairs["unknown_category"] += len(own)
            elif not category and (nameless := sum(batch.events[row].ph == "X" for row in own)):
                timeline.repairs["unknown_category"] += nameless
    timeline.events += reader.passed_over
    timeline.repairs.update(reader.repairs)
    return timeline


def _complete(reader: Reader, timeline: Timeline, batch: Batch, rows: list[int]) -> Chosen:
    """The complete events among these rows; refuses one whose time or duration is missing."""
    events = [batch.events[row] for row in rows]
    if {event.ph for event in events} != {"X"}:
        timeline.repairs["not_a_complete_event"] += sum(event.ph != "X" for event in events)
        rows = [row for row, event in zip(rows, events, strict=True) if event.ph == "X"]
        events = [batch.events[row] for row in rows]
    if strange := sum([not event.name or type(event.tid) is str for event in events]):
        timeline.repairs["no_name_or_thread"] += strange
    at = np.array(rows, np.intp)
    chosen = Chosen(batch, rows, events, batch.start_ns[at], batch.dur_ns[at])
    for column, key in ((chosen.start_ns, "ts"), (chosen.dur_ns, "dur")):
        for first in np.flatnonzero(column == MISSING)[:1]:
            raise reader.refuse(batch.offset_of(rows[first]), f"event {events[first].name!r} has no usable {key}")
    return chosen
