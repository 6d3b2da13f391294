"""One rank's events as columns: of each only what the measurement needs, a few bytes."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import msgspec
import numpy as np

from trisect.trace.collective_names import is_communication_kernel, is_of_collective
from trisect.trace.event_reader import Batch, Reader
from trisect.trace.events import MISSING_NS, Args, Event
from trisect.trace.growing_columns import Column, GrowingColumns
from trisect.trace.nested_operators import absorption

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
"""Kineto's other categories, which are not needed. One that is in no list is counted as damage."""

MOST_NAMES = 1000
"""Names of annotations that are kept, for an error about one that is missing."""

_AUTOGRAD = "autograd::engine::evaluate_function"
_NUMBER = re.compile(r"#\d{1,18}$")
_LAUNCHES_KERNEL = re.compile(r"^(cuda|hip|cu)\w*LaunchKernel|LaunchCooperativeKernel")


@dataclass(frozen=True)
class Annotation:
    """An annotation of the host or a communication kernel (its thread is the stream): few enough to keep as objects."""

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


class Recording:
    """The events of a file, or of one chunk of it, as columns.

    Threads and streams are numbered as they appear; times lack the file's base time.

    Attributes:
        annotations: the annotations of the host that are wanted, in the file's order; `names` has
            those of all but collectives, by `name_as_kind`, up to MOST_NAMES.
        device: device activity; `kernel` is the place in `communication` of those that are NCCL kernels, else -1.
        launches: calls that may start device work; `kernel` is 1 for those that start one kernel each.
        host: operators on the host; `c10d` is 1 for those of torch.distributed, `absorbed` for those that stand
            for the operators inside them, which are not kept.
    """

    def __init__(self, wanted: Callable[[str], bool], absorb: bool = True) -> None:
        self.events = 0
        self.repairs: Counter[str] = Counter()
        self.annotations: list[Annotation] = []
        self.names: set[str] = set()
        self.device = GrowingColumns(
            start_ns=np.int64, dur_ns=np.int64, stream=np.int32, correlation=np.int64, kernel=np.int32
        )
        self.communication: list[Annotation] = []
        self.launches = GrowingColumns(start_ns=np.int64, thread=np.int32, correlation=np.int64, kernel=np.int8)
        self.host = GrowingColumns(start_ns=np.int64, dur_ns=np.int64, thread=np.int32, c10d=np.int8, absorbed=np.int8)
        self._wanted, self._absorb = wanted, absorb
        self.autograd_threads: set[int] = set()
        self._threads, self._streams = _Numbers(), _Numbers()

    def __len__(self) -> int:
        return len(self.device) + len(self.launches) + len(self.host) + len(self.annotations)

    def add(self, batch: Batch, reader: Reader) -> None:
        """Add the events that matter.

        Raises:
            TrisectError: one of them has no usable time or duration.
        """
        sinks = {
            **dict.fromkeys(DEVICE, self._add_device),
            **dict.fromkeys(LAUNCH, self._add_launches),
            **dict.fromkeys(ANNOTATION, self._add_annotations),
            **dict.fromkeys(HOST, self._add_host),
        }
        self.events += len(batch.events)
        rows: defaultdict[str, list[int]] = defaultdict(list)
        for row, event in enumerate(batch.events):
            rows[event.cat].append(row)
        if not reader.host_ops:  # they are filtered out, but for some at the ends of blocks
            for category in HOST:
                rows.pop(category, None)
        for category, own in rows.items():
            if (sink := sinks.get(category)) is not None:
                if (chosen := _complete(batch, own, reader, self.repairs)).rows:
                    sink(chosen)
            elif category not in UNUSED:
                self.repairs["unknown_category"] += len(own)
            elif not category and (damaged := sum(_needs_category(batch.events[row].ph) for row in own)):
                self.repairs["unknown_category"] += damaged

    def split(self, time_ns: int, launch_ns: Column) -> tuple[Self, Self]:
        """What comes before a time and what comes after; device activity by `launch_ns`.

        Both share the counts and numbers, and either may go on to grow.
        """
        return self._part(lambda start_ns: start_ns < time_ns, launch_ns), self._part(
            lambda start_ns: start_ns >= time_ns, launch_ns
        )

    def _part(self, side: Callable[[Any], Any], launch_ns: Column) -> Self:
        part = copy(self)
        part.annotations = [annotation for annotation in self.annotations if side(annotation.start_ns)]
        part.launches = self.launches.where(side(self.launches["start_ns"]))
        part.host = self.host.where(side(self.host["start_ns"]))
        part.device = self.device.where(side(launch_ns))
        kernel = part.device["kernel"]
        part.communication = [self.communication[at] for at in kernel[kernel >= 0]]
        kernel[kernel >= 0] = np.arange(len(part.communication))
        return part

    def _add_device(self, chosen: Chosen) -> None:
        """Add kernels, copies and memsets."""
        events, streams = chosen.events, self._streams
        is_kernel = chosen.events[0].cat == "kernel"
        communicate = chosen.names(is_communication_kernel) if is_kernel else set()
        kernel = [-1] * len(events)
        for at, event in enumerate(events):
            if event.name in communicate or event.args.collective:
                kernel[at] = len(self.communication)
                self.communication.append(self._annotation(chosen, at))
        self.device.append(
            start_ns=chosen.start_ns,
            dur_ns=chosen.dur_ns,
            stream=[streams[event.tid, event.pid] for event in events],
            correlation=[event.args.correlation for event in events],
            kernel=kernel,
        )

    def _add_launches(self, chosen: Chosen) -> None:
        """Add calls of the CUDA runtime and driver."""
        launch, threads = chosen.names(_LAUNCHES_KERNEL.search), self._threads
        self.launches.append(
            start_ns=chosen.start_ns,
            thread=[threads[event.tid] for event in chosen.events],
            correlation=[event.args.correlation for event in chosen.events],
            kernel=[event.name in launch for event in chosen.events],
        )

    def _add_host(self, chosen: Chosen) -> None:
        """Add operators of the host, those inside others of this batch left out."""
        events, start_ns, dur_ns = chosen.events, chosen.start_ns, chosen.dur_ns
        threads = np.array([self._threads[event.tid] for event in events], np.int64)
        of_autograd = [event.name.startswith(_AUTOGRAD) for event in events]
        self.autograd_threads.update(np.unique(threads[of_autograd]).tolist())
        c10d = np.array(["c10d" in event.name for event in events])
        absorbing = absorbed = np.zeros(len(events), bool)
        if self._absorb:
            absorbing, absorbed = absorption(start_ns, dur_ns, threads, c10d)
        kept = ~absorbed
        self.host.append(
            start_ns=start_ns[kept],
            dur_ns=dur_ns[kept],
            thread=threads[kept],
            c10d=c10d[kept],
            absorbed=absorbing[kept],
        )

    def _add_annotations(self, chosen: Chosen) -> None:
        """Add annotations."""
        wanted = chosen.names(self._wanted)
        for at, event in enumerate(chosen.events):
            if event.name in wanted:
                self.annotations.append(self._annotation(chosen, at))
        if len(self.names) < MOST_NAMES:
            self.names.update(name_as_kind(name) for name in chosen.names(lambda name: not is_of_collective(name)))

    def _annotation(self, chosen: Chosen, at: int) -> Annotation:
        event, start_ns = chosen.events[at], int(chosen.start_ns[at])
        end_ns = start_ns + int(chosen.dur_ns[at])
        args = event.args
        if args.dims:  # a view that would keep the whole batch in memory
            args = msgspec.structs.replace(args, dims=args.dims.copy(), types=args.types.copy())
        place = (chosen.batch.offset, chosen.rows[at])
        return Annotation(event.name, self._threads[event.tid], start_ns, end_ns, args, place)


def name_as_kind(name: str) -> str:
    """An annotation's name, with "#k" for its number: "ProfilerStep#3" as "ProfilerStep#k", other names as they are."""
    return _NUMBER.sub("#k", name)


class _Numbers(dict[object, int]):
    """0, 1, ... for threads (by id) and for streams (by id and device)."""

    def __missing__(self, key: object) -> int:
        self[key] = number = len(self)
        return number


def _needs_category(phase: str) -> bool:
    """Whether an event of this phase should have one; phases are single characters, any other is damage."""
    return phase == "X" or len(phase) != 1


def _complete(batch: Batch, rows: list[int], reader: Reader, repairs: Counter[str]) -> Chosen:
    """The complete events among these rows; refuses one whose time or duration is missing."""
    events = [batch.events[row] for row in rows]
    if {event.ph for event in events} != {"X"}:
        repairs["not_a_complete_event"] += sum(event.ph != "X" for event in events)
        rows = [row for row, event in zip(rows, events, strict=True) if event.ph == "X"]
        events = [batch.events[row] for row in rows]
    if strange := sum([not event.name or type(event.tid) is str for event in events]):
        repairs["no_name_or_thread"] += strange
    at = np.array(rows, np.intp)
    chosen = Chosen(batch, rows, events, batch.start_ns[at], batch.dur_ns[at])
    for column, key in ((chosen.start_ns, "ts"), (chosen.dur_ns, "dur")):
        for first in np.flatnonzero(column == MISSING_NS)[:1]:
            raise reader.refuse(batch.offset_of(rows[first]), f"event {events[first].name!r} has no usable {key}")
    return chosen
