"""One rank's trace as columns: of every event only what the measurement needs, a few bytes each."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from trisect.trace.collectives import is_communication_kernel
from trisect.trace.events import MISSING, Args
from trisect.trace.reader import Batch, Reader

Column = NDArray[np.int64]

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
LAUNCH = ("cuda_runtime", "cuda_driver")
HOST = ("cpu_op",)
ANNOTATION = ("user_annotation",)

UNUSED = frozenset(
    (
        *("", "ac2g", "async_cpu_to_gpu", "fwdbwd", "async_gpu", "gpu_user_annotation", "Trace", "overhead"),
        *("python_function", "cpu_instant_event", "cuda_sync", "cuda_profiler_range", "cuda_event", "collective_comm"),
        *("glow_runtime", "privateuse1_runtime", "privateuse1_driver", "mtia_runtime", "mtia_ccp_events"),
        *("hpu_op", "xpu_runtime", "xpu_driver", "external", "user_defined", "cpu_profiler", "flow", "Spans"),
    )
)
"""Categories that are read past. One that is in no list is counted, because damage makes such."""

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
    """Named int64 columns of one length, grown a batch at a time."""

    def __init__(self, *names: str) -> None:
        self._parts: dict[str, list[Column]] = {name: [np.empty(0, np.int64)] for name in names}

    def append(self, **parts: Column | list[int]) -> None:
        """Add one part per column."""
        for name, column in self._parts.items():
            column.append(np.asarray(parts[name], np.int64))

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
        host: operators on the host; `c10d` is 1 for those of torch.distributed.
    """

    def __init__(self) -> None:
        self.events = 0
        self.repairs: Counter[str] = Counter()
        self.marks: list[Mark] = []
        self.device = Columns("start_ns", "dur_ns", "stream", "correlation")
        self.communication: dict[int, Mark] = {}
        self.launches = Columns("start_ns", "thread", "correlation", "kernel")
        self.host = Columns("start_ns", "dur_ns", "thread", "c10d")
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
        """Add operators of the host."""
        events = [batch.events[row] for row in rows]
        threads = [self._numbers[event.tid, None] for event in events]
        self.autograd_threads.update(
            thread for thread, event in zip(threads, events, strict=True) if event.name.startswith(_AUTOGRAD)
        )
        self.host.append(
            start_ns=batch.start_ns[rows],
            dur_ns=batch.dur_ns[rows],
            thread=threads,
            c10d=["c10d" in event.name for event in events],
        )

    def add_marks(self, batch: Batch, rows: list[int]) -> None:
        """Add annotations."""
        self.marks.extend(self._mark(batch, row) for row in rows)

    def _mark(self, batch: Batch, row: int) -> Mark:
        event, start_ns = batch.events[row], int(batch.start_ns[row])
        end_ns = start_ns + int(batch.dur_ns[row])
        return Mark(event.name, self._numbers[event.tid, None], start_ns, end_ns, event.args, (batch.offset, row))


@cache
def _launches_kernel(name: str) -> bool:
    return bool(_LAUNCHES_KERNEL.search(name))


class _Numbers(dict[tuple[object, object], int]):
    """0, 1, ... for threads (tid, None) and streams (tid, device)."""

    def __missing__(self, key: tuple[object, object]) -> int:
        self[key] = number = len(self)
        return number


def read_timeline(reader: Reader) -> Timeline:
    """One file as columns, its times and durations as they were written.

    Raises:
        TrisectError: as Reader.batches; an event without a usable time or duration.
    """
    timeline = Timeline()
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
    nameless = sum(not batch.events[row].name for row in complete)
    nowhere = sum(not isinstance(batch.events[row].tid, int) for row in complete)
    if nameless or nowhere:
        timeline.repairs += Counter(unnamed_event=nameless, unknown_thread=nowhere)
    for column, key in ((batch.start_ns, "ts"), (batch.dur_ns, "dur")):
        missing = np.flatnonzero(column[complete] == MISSING)
        if len(missing):
            row = complete[missing[0]]
            raise reader.refuse(batch.offset_of(row), f"event {batch.events[row].name!r} has no usable {key}")
    return complete
