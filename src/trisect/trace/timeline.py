"""One rank's trace as columns: of every event only what the measurement needs, a few bytes each."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from trisect.trace.collectives import is_communication_kernel
from trisect.trace.events import MISSING, Args
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
        device: device activity; `communication` has the rows of it that are NCCL kernels.
        launches: calls that may start device work; `kernel` is 1 for those that start one kernel each.
        host: operators on the host; `c10d` is 1 for those of torch.distributed, `absorbed` for those that stand
            for the operators inside them, which are not kept.
    """

    def __init__(self, absorb: bool = True) -> None:
        self.events = 0
        self.repairs: Counter[str] = Counter()
        self.marks: list[Mark] = []
        self.device = Columns(start_ns=np.int64, dur_ns=np.int64, stream=np.int32, correlation=np.int64)
        self.communication: dict[int, Mark] = {}
        self.launches = Columns(start_ns=np.int64, thread=np.int32, correlation=np.int64, kernel=np.int8)
        self.host = Columns(start_ns=np.int64, dur_ns=np.int64, thread=np.int32, c10d=np.int8, absorbed=np.int8)
        self._absorb = absorb
        self.autograd_threads: set[int] = set()
        self._numbers = _Numbers()

    def add_device(self, batch: Batch, rows: list[int]) -> None:
        """Add kernels, copies and memsets."""
        events = [batch.events[row] for row in rows]
        before = len(self.device)
        for position, (row, event) in enumerate(zip(rows, events, strict=True), before):
            if event.args.collective or (event.cat == "kernel" and is_communication_kernel(event.name)):
                self.communication[position] = self._mark(batch, row)
        self.device.append(
            start_ns=batch.start_ns[rows],
            dur_ns=batch.dur_ns[rows],
            stream=[self._numbers[event.tid, event.pid] for event in events],
            correlation=[event.args.correlation for event in events],
        )

    def add_launches(self, batch: Batch, rows: list[int]) -> None:
        """Add calls of the CUDA runtime and driver."""
        events = [batch.events[row] for row in rows]
        self.launches.append(
            start_ns=batch.start_ns[rows],
            thread=[self._numbers[event.tid, None] for event in events],
            correlation=[event.args.correlation for event in events],
            kernel=[_launches_kernel(event.name) for event in events],
        )

    def add_host(self, batch: Batch, rows: list[int]) -> None:
        """Add operators of the host, those inside others of this batch left out."""
        events = [batch.events[row] for row in rows]
        threads = np.array([self._numbers[event.tid, None] for event in events], np.int64)
        of_autograd = [event.name.startswith(_AUTOGRAD) for event in events]
        self.autograd_threads.update(np.unique(threads[of_autograd]).tolist())
        start_ns, dur_ns = batch.start_ns[rows], batch.dur_ns[rows]
        c10d = np.array(["c10d" in event.name for event in events])
        absorbing = absorbed = np.zeros(len(rows), bool)
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

    def add_marks(self, batch: Batch, rows: list[int]) -> None:
        """Add annotations."""
        self.marks.extend(self._mark(batch, row) for row in rows)

    def _mark(self, batch: Batch, row: int) -> Mark:
        event, start_ns = batch.events[row], int(batch.start_ns[row])
        end_ns = start_ns + int(batch.dur_ns[row])
        args = event.args
        if args.dims:  # a view that would keep the whole batch in memory
            args = msgspec.structs.replace(args, dims=args.dims.copy(), types=args.types.copy())
        return Mark(event.name, self._numbers[event.tid, None], start_ns, end_ns, args, (batch.offset, row))


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


@cache
def _launches_kernel(name: str) -> bool:
    return bool(_LAUNCHES_KERNEL.search(name))


class _Numbers(dict[tuple[object, object], int]):
    """0, 1, ... for threads (tid, None) and streams (tid, device)."""

    def __missing__(self, key: tuple[object, object]) -> int:
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
        rows: dict[str, list[int]] = {category: [] for category in sinks}
        for row, event in enumerate(batch.events):
            if (chosen := rows.get(event.cat)) is not None:
                chosen.append(row)
            elif event.cat not in UNUSED or (not event.cat and event.ph == "X"):
                timeline.repairs["unknown_category"] += 1
        for category, sink in sinks.items():
            if chosen := _complete(reader, timeline, batch, rows[category]):
                sink(batch, chosen)
    timeline.events += reader.passed_over
    timeline.repairs.update(reader.repairs)
    return timeline


def _complete(reader: Reader, timeline: Timeline, batch: Batch, rows: list[int]) -> list[int]:
    """The rows that are complete events; refuses one whose time or duration is missing."""
    complete = [row for row in rows if batch.events[row].ph == "X"]
    if len(complete) < len(rows):
        timeline.repairs["not_a_complete_event"] += len(rows) - len(complete)
    chosen = [batch.events[row] for row in complete]
    if strange := sum([not event.name or type(event.tid) is str for event in chosen]):
        timeline.repairs["no_name_or_thread"] += strange
    for column, key in ((batch.start_ns, "ts"), (batch.dur_ns, "dur")):
        missing = np.flatnonzero(column[complete] == MISSING)
        if len(missing):
            row = complete[missing[0]]
            raise reader.refuse(batch.offset_of(row), f"event {batch.events[row].name!r} has no usable {key}")
    return complete
