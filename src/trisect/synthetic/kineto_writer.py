"""Traces of a known job, in the Kineto format that torch.profiler writes, one file a rank.

Gloo flavour: compute is `cpu_op`s of the main thread, a collective a `gloo:` annotation of a worker thread.
NCCL flavour: compute and collectives are kernels on two streams, each launched earlier from the host, with
correlation ids and flow events. The same job always gives the same bytes.
"""

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from trisect.host import write_whole
from trisect.synthetic.ground_truth import Played, PlayedIteration, PlayedSection, SyntheticJob, per_rank, play

BASE_NS = 1_790_000_000_000_000_000
"""baseTimeNanoseconds of every file; times in the file are relative to it."""

ORIGIN_NS = 5_000_000
"""True time at which a job starts, after BASE_NS: the first launch lies before it."""

LEAD_NS = 80_000
"""How far the host runs ahead of the device."""

LAUNCH_NS = 200
_PID, _WORKER = 4000, 4100
_COMPUTE_STREAM, _COMM_STREAM = 7, 40
_OPS = {  # op: host operation, "Collective name", what the kernel's name says
    "all_reduce": ("c10d::allreduce_", "allreduce", "AllReduce_Sum_f32_RING_LL"),
    "all_gather": ("c10d::_allgather_base_", "_allgather_base", "AllGather_RING_LL"),
    "reduce_scatter": ("c10d::_reduce_scatter_base_", "_reduce_scatter_base", "ReduceScatter_Sum_f32_RING_LL"),
    "all_to_all": ("c10d::alltoall_base_", "all_to_all", "SendRecv"),
    "broadcast": ("c10d::broadcast_", "broadcast", "Broadcast_RING_LL"),
    "reduce": ("c10d::reduce_", "reduce", "Reduce_Sum_f32_RING_LL"),
    "gather": ("c10d::gather_", "gather", "SendRecv"),
    "scatter": ("c10d::scatter_", "scatter", "SendRecv"),
    "barrier": ("c10d::barrier", "barrier", "AllReduce_Sum_f32_RING_LL"),
}


@dataclass
class _Rank:
    """The events of one rank so far. Times go in as true time and come out on the rank's clock."""

    rank: int
    offset_ns: int
    drift_ppm: float
    events: list[str] = field(default_factory=list)
    correlation: int = 100
    host_ns: int = 0  # the host's program counter, in true time (NCCL flavour)
    issued: dict[str, int] = field(default_factory=dict)  # sequence number by group

    def clock(self, true_ns: int) -> int:
        """What this rank's clock shows, relative to BASE_NS."""
        true_ns = int(true_ns) + ORIGIN_NS
        return true_ns + self.offset_ns + round(true_ns * self.drift_ppm * 1e-6)

    def event(self, cat: str, name: str, tid: int, start_ns: int, end_ns: int, args: str, pid: int = _PID) -> None:
        """A complete event; `args` is the inside of a JSON object."""
        start, end = self.clock(start_ns), self.clock(end_ns)
        self.events.append(
            f'{{"ph": "X", "cat": "{cat}", "name": "{name}", "pid": {pid}, "tid": {tid}, "ts": {_microseconds(start)},'
            f' "dur": {_microseconds(end - start)}, "args": {{{args}}}}}'
        )

    def launch(self, op: str, kernel: str, start_ns: int, end_ns: int, stream: int, args: str = "") -> None:
        """A kernel at the given device time, and the host call that put it there."""
        self.correlation += 1
        number = self.correlation
        begin = self.host_ns = max(self.host_ns, int(start_ns) - LEAD_NS)
        self.host_ns += LAUNCH_NS
        self.event("cpu_op", op, _PID, begin, self.host_ns, f'"External id": {number}')
        call = f'"External id": {number}, "cbid": 211, "correlation": {number}'
        self.event("cuda_runtime", "cudaLaunchKernel", _PID, begin, self.host_ns, call)
        self.flow("s", number, _PID, _PID, begin)
        on = (
            f'"External id": {number}, "device": {self.rank}, "context": 1, "stream": {stream}, "correlation": {number}'
        )
        self.event("kernel", kernel, stream, start_ns, end_ns, on + (", " + args if args else ""), pid=self.rank)
        self.flow("f", number, self.rank, stream, start_ns)

    def flow(self, phase: str, number: int, pid: int, tid: int, at_ns: int) -> None:
        """One end of the arrow from a launch to its kernel."""
        bind = ', "bp": "e"' if phase == "f" else ""
        self.events.append(
            f'{{"ph": "{phase}", "id": {number}, "pid": {pid}, "tid": {tid}, "ts": {_microseconds(self.clock(at_ns))},'
            f' "cat": "ac2g", "name": "ac2g"{bind}}}'
        )


def write_job(job: SyntheticJob, folder: Path, *, compress: bool = True) -> list[Path]:
    """Write one trace a rank: `folder`/rank-0000.json.gz and so on (`.json` if not `compress`).

    Returns:
        The paths, in order of rank.

    Raises:
        ValueError: the job cannot be seen in traces of its flavour, or its flavour is unknown.
    """
    folder.mkdir(parents=True, exist_ok=True)
    played = play(job)
    paths = []
    for rank in range(job.world_size):
        path = folder / f"rank-{rank:04d}.json{'.gz' if compress else ''}"
        text = trace_of_rank(job, played, rank).encode()
        write_whole(path, gzip.compress(text, compresslevel=1, mtime=0) if compress else text)
        paths.append(path)
    return paths


def trace_of_rank(job: SyntheticJob, played: list[PlayedIteration], rank: int) -> str:
    """The trace of one rank as JSON text; `played` is `ground_truth.play(job)`."""
    drift = np.broadcast_to(np.asarray(job.drift_ppm, dtype=float), (job.world_size,))
    out = _Rank(rank, int(per_rank(job.offset_ns, job.world_size)[rank]), float(drift[rank]))
    flavours: dict[str, Callable[[_Rank, SyntheticJob, PlayedIteration, int], None]] = {"gloo": _gloo, "nccl": _nccl}
    if job.flavour not in flavours:
        raise ValueError(f"flavour {job.flavour!r}: use one of {', '.join(flavours)}")
    for number, iteration in enumerate(played, start=job.first_iteration):
        flavours[job.flavour](out, job, iteration, number)
    return _document(job, rank, out.events)


def _microseconds(ns: int) -> str:
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{ns // 1000}.{ns % 1000:03d}"


def _document(job: SyntheticJob, rank: int, events: list[str]) -> str:
    groups = {"0": list(range(job.world_size))}
    for sections in job.iterations:
        groups |= {e.group: list(e.ranks) for section in sections for e in section.exchanges if e.ranks}
    config = [
        {
            "pg_name": name,
            "pg_desc": "default_pg" if name == "0" else "undefined",
            "pg_size": len(ranks),
            "ranks": ranks,
        }
        for name, ranks in groups.items()
    ]
    distributed = {"backend": job.flavour, "rank": rank, "world_size": job.world_size, "pg_count": len(groups)}
    head = {
        "schemaVersion": 1,
        "deviceProperties": [],
        "record_shapes": 1,
        "distributedInfo": distributed | {"pg_config": config},
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_NS,
    }
    return json.dumps(head)[:-1] + ', "traceEvents": [\n' + ",\n".join(events) + "\n]}\n"


def _on_rank(section: PlayedSection, rank: int) -> list[tuple[Played, int]]:
    """The exchanges that `rank` takes part in, each with its place in the arrays."""
    found = [(one, np.flatnonzero(one.members == rank)) for one in section.exchanges]
    return [(one, int(place[0])) for one, place in found if len(place)]


# --- gloo ---


def _gloo(out: _Rank, job: SyntheticJob, iteration: PlayedIteration, number: int) -> None:
    rank = out.rank
    start, end = iteration.start_ns[rank], iteration.end_ns[rank]
    out.event("user_annotation", f"ProfilerStep#{number}", _PID, start, end, '"External id": 1')
    for section in iteration.sections:
        end = section.end_ns[rank]
        out.event("user_annotation", section.section.name, _PID, section.start_ns[rank], end, '"External id": 2')
        for one, at in _on_rank(section, rank):
            _cpu_op(out, one.start_ns[at], one.compute_end_ns[at])
            _gloo_collective(out, one, at)
            _cpu_op(out, one.arrival_ns[at], one.arrival_ns[at] + one.hidden_ns[at])
        _cpu_op(out, end - section.tail_ns[rank], end)
    if iteration.barrier:
        _gloo_collective(out, iteration.barrier, rank)


def _cpu_op(out: _Rank, start_ns: int, end_ns: int) -> None:
    """An operation and the inner one that does its work."""
    if end_ns > start_ns:
        for name in ("aten::conv2d", "aten::convolution"):
            out.event("cpu_op", name, _PID, start_ns, end_ns, '"External id": 3')


def _gloo_collective(out: _Rank, one: Played, at: int) -> None:
    exchange, start, end = one.exchange, one.arrival_ns[at], one.end_ns[at]
    sent, _ = _elements(one)
    issued = min(end, start + LAUNCH_NS) if not one.hidden_ns[at] else start
    out.event("cpu_op", _OPS[exchange.op][0], _PID, start, issued, '"External id": 4')
    shapes = f'"External id": 513, "Input type": ["float"], "Input Dims": [[{sent}]]'
    out.event("user_annotation", f"gloo:{exchange.op}", _WORKER, start, end, shapes)


def _elements(one: Played) -> tuple[int, int]:
    """Elements of four bytes that one rank puts in and takes out."""
    whole, size = one.exchange.payload_bytes // 4, len(one.members)
    return {
        "all_gather": (whole // size, whole),
        "reduce_scatter": (whole, whole // size),
        "gather": (whole // size, whole),
        "scatter": (whole, whole // size),
    }.get(one.exchange.op, (whole, whole))


# --- NCCL ---


def _nccl(out: _Rank, job: SyntheticJob, iteration: PlayedIteration, number: int) -> None:
    rank = out.rank
    out.host_ns = max(out.host_ns, int(iteration.start_ns[rank]) - LEAD_NS)
    step_start = out.host_ns
    for section in iteration.sections:
        out.host_ns = max(out.host_ns, int(section.start_ns[rank]) - LEAD_NS)
        begin, end = out.host_ns, section.end_ns[rank]
        for one, at in _on_rank(section, rank):
            _kernel(out, one.start_ns[at], one.compute_end_ns[at])
            _nccl_collective(out, one, at)
            _kernel(out, one.arrival_ns[at], one.arrival_ns[at] + one.hidden_ns[at])
        _kernel(out, end - section.tail_ns[rank], end)
        out.event("user_annotation", section.section.name, _PID, begin, out.host_ns, '"External id": 2')
        out.host_ns += LAUNCH_NS
    if iteration.barrier:
        _nccl_collective(out, iteration.barrier, rank)
    step_end = out.host_ns = max(out.host_ns, int(iteration.end_ns[rank]) - LEAD_NS)
    out.event("user_annotation", f"ProfilerStep#{number}", _PID, step_start, step_end, '"External id": 1')


def _kernel(out: _Rank, start_ns: int, end_ns: int) -> None:
    if end_ns > start_ns:
        out.launch("aten::convolution", "implicit_convolve_sgemm", start_ns, end_ns, _COMPUTE_STREAM)


def _nccl_collective(out: _Rank, one: Played, at: int) -> None:
    exchange = one.exchange
    seq = out.issued[exchange.group] = out.issued.get(exchange.group, 0) + 1
    host, collective, kernel = _OPS[exchange.op]
    sent, received = _elements(one)
    args = (
        f'"Collective name": "{collective}", "In msg nelems": {sent}, "Out msg nelems": {received},'
        f' "Group size": {len(one.members)}, "dtype": "Float", "Process Group Name": "{exchange.group}",'
        f' "Process Group Description": "default_pg", "Process Group Ranks": "{[int(r) for r in one.members]}",'
        f' "Seq": {seq}'
    )
    name = f"ncclDevKernel_{kernel}(ncclDevKernelArgsStorage<4096ul>)"
    out.launch(host, name, one.arrival_ns[at], one.end_ns[at], _COMM_STREAM, args)
