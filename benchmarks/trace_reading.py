"""Speed and memory of reading traces, against HolisticTraceAnalysis; prints the table of docs/performance.md.

    python benchmarks/trace_reading.py            # a few minutes; needs 5 GB in --folder
    python benchmarks/trace_reading.py --quick    # a tenth of every size
    python benchmarks/trace_reading.py --large    # also a file of 9 GB

Every figure is taken in a process of its own, bound to the cores stated. Of one file it is the processor's time,
which other work on the machine changes little; of a job it is time that passed. HolisticTraceAnalysis 0.5.0 is read
with --hta-python, an interpreter that has it (default: this one, if it has); without one its rows are left out.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

BASE_NS = 1_790_000_000_000_000_000
STEP_US, KERNELS, LAST_STEP = 60_000, 1_000, 10_000
KERNEL = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>"
    " >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)"
)
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"

READ_RANK = """
import json, resource, sys, time
from pathlib import Path
from trisect.trace.read_rank import read_rank
start = time.process_time()
one = read_rank(Path(sys.argv[1]), ["forward", "backward"], "ProfilerStep")
seconds = time.process_time() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"seconds": seconds, "peak_mb": peak / 1024, "events": one.reading["events"]}))
"""
READ_JOB = """
import json, os, sys, time
from pathlib import Path
from trisect.trace.read_job import read_job
if __name__ == "__main__":
    start = time.perf_counter()
    trace = read_job(Path(sys.argv[1]), sections=["forward", "backward"], workers=int(sys.argv[2]))
    seconds, processor = time.perf_counter() - start, sum(os.times()[:4])
    print(json.dumps({"seconds": seconds, "processor": processor, "rows": len(trace.collectives)}))
"""
READ_HTA = """
import json, logging, resource, sys, time
from hta.common.trace import parse_trace_file
logging.disable()
start = time.process_time()
_, events, _ = parse_trace_file(sys.argv[1])
seconds = time.process_time() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"seconds": seconds, "peak_mb": peak / 1024, "events": len(events)}))
"""


def step_events(step: int, rank: int, host_only: bool = False) -> Iterator[str]:
    """Events of one iteration in Kineto's layout: its mix of categories, its lengths of names and arguments."""
    begin = 1_000_000 + step * STEP_US
    for name, start, dur in (
        (f"ProfilerStep#{step}", 0, STEP_US - 10),
        ("forward", 10, STEP_US // 2 - 20),
        ("backward", STEP_US // 2, STEP_US // 2 - 20),
    ):
        yield _complete("user_annotation", name, 4000, 4000, begin + start, dur, '"External id": 1, "Ev Idx": 1')
    for kernel in range(KERNELS):
        at = begin + 20 + kernel * (STEP_US - 100) // KERNELS
        number, communicates = step * KERNELS + kernel + 1, kernel % 100 == 99
        if host_only:
            yield from _computed(number, at, communicates)
        else:
            yield from _launched(number, at, 40 if communicates else 7, rank)


def _shapes(number: int) -> str:
    """Arguments of an operator recorded with record_shapes=True."""
    return (
        f'"External id": {number},"Record function id": 0, "Sequence number": {number}, "Fwd thread id": 0,'
        ' "Concrete Inputs": ["", "", "1"], "Input type": ["float", "float", "Scalar"],'
        f' "Input Strides": [[4096, 64, 1], [64, 1], []], "Input Dims": [[8, 64, 64], [64, 64], []], "Ev Idx": {number}'
    )


def _computed(number: int, at: int, communicates: bool) -> Iterator[str]:
    if communicates:
        shapes = '"Input type": ["float"], "Input Dims": [[1000000]]'
        yield _complete("cpu_op", "c10d::allreduce_", 4000, 4000, at, 5, _shapes(number))
        yield _complete("user_annotation", "gloo:all_reduce", 4000, 4100, at + 2, 40, shapes)
    else:
        for depth, name in enumerate(("aten::linear", "aten::addmm", "aten::expand", "aten::copy_", "aten::mm")):
            yield _complete("cpu_op", name, 4000, 4000, at + depth, 40 - 2 * depth, _shapes(number))


def _launched(number: int, at: int, stream: int, rank: int) -> Iterator[str]:
    external = f'"External id": {number}'
    for depth, name in enumerate(("aten::add", "aten::empty", "aten::to", "aten::_to_copy")):
        yield _complete("cpu_op", name, 4000, 4000, at + depth, 30 - depth, _shapes(number))
    for call in ("cudaStreamIsCapturing", "cudaLaunchKernel"):
        correlation = number if call == "cudaLaunchKernel" else number + 1_000_000_000
        args = f'{external}, "cbid": 211, "correlation": {correlation}'
        yield _complete("cuda_runtime", call, 4000, 4000, at + 10, 5, args)
    flow = f'"id": {number}, "cat": "ac2g", "name": "ac2g"'
    yield f'{{\n    "ph": "s", "pid": 4000, "tid": 4000, "ts": {at + 10}.125, {flow}\n  }}'
    yield f'{{\n    "ph": "f", "pid": {rank}, "tid": {stream}, "ts": {at + 15}.125, {flow}, "bp": "e"\n  }}'
    args = (
        f'{external}, "queued": 0, "device": {rank}, "context": 1, "stream": {stream}, "correlation": {number},\n'
        '      "registers per thread": 20, "shared memory": 0, "blocks per SM": 9.481481, "warps per SM": 37.925926,\n'
        '      "grid": [1024, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 59'
    )
    if stream == 40:
        args += (
            ',\n      "Collective name": "allreduce", "In msg nelems": 1000000, "Out msg nelems": 1000000,'
            ' "Group size": 64, "dtype": "Float", "Process Group Name": "0", "Process Group Description": "default_pg"'
        )
    yield _complete("kernel", NCCL if stream == 40 else KERNEL, rank, stream, at + 15, 40 if stream == 40 else 30, args)


def _complete(cat: str, name: str, pid: int, tid: int, ts: int, dur: int, args: str) -> str:
    return (
        f'{{\n    "ph": "X", "cat": "{cat}", "name": "{name}", "pid": {pid}, "tid": {tid},\n'
        f'    "ts": {ts}.{ts * 7919 % 1000:03d}, "dur": {dur}.{ts * 104729 % 1000:03d},\n'
        f'    "args": {{\n      {args}\n    }}\n  }}'
    )


def write_trace(
    path: Path,
    megabytes: float,
    rank: int = 0,
    world_size: int = 64,
    *,
    host_only: bool = False,
    backwards: bool = False,
) -> Path:
    """A trace of at least this size, on request with its last iteration first. A .gz holds `megabytes` of text."""
    head = {
        "schemaVersion": 1,
        "deviceProperties": [] if host_only else [{"id": rank, "name": "Tesla V100-SXM2-32GB"}],
        "distributedInfo": {"backend": "gloo" if host_only else "nccl", "rank": rank, "world_size": world_size},
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_NS,
    }
    written, step = 0, 0
    with gzip.open(path, "wt", compresslevel=1) if path.suffix == ".gz" else path.open("w") as out:
        out.write(json.dumps(head)[:-1] + ', "traceEvents": [\n  ')
        while written < megabytes * 1e6:
            text = ",\n  ".join(step_events(LAST_STEP - step if backwards else step, rank, host_only))
            written += out.write(text if step == 0 else ",\n  " + text)
            step += 1
        out.write("\n  ]}\n")
    return path


def write_ranks(folder: Path, ranks: int, megabytes: float) -> Path:
    """One trace per rank, alike but for the rank."""
    folder.mkdir()
    first = write_trace(folder / "rank-0000.json", megabytes, world_size=ranks)
    text = first.read_bytes()
    for rank in range(1, ranks):
        (folder / f"rank-{rank:04d}.json").write_bytes(text.replace(b'"rank": 0', b'"rank": %d' % rank, 1))
    return folder


def measure(program: str, *arguments: object, cores: int = 1, python: str = sys.executable) -> dict[str, float]:
    """What `program` prints, run by its own interpreter on the first `cores` cores."""
    chosen = sorted(os.sched_getaffinity(0))[:cores]
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(program)
        script.flush()
        done = subprocess.run(
            [python, script.name, *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda: os.sched_setaffinity(0, chosen),
        )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def row(what: str, figure: str, target: str = "") -> None:
    """One line of the table."""
    print(f"| {what} | {figure} | {target} |", flush=True)


def against_hta(folder: Path, scale: float, hta_python: str | None) -> None:
    """One file, plain and compressed, on one core."""
    for suffix, times in ((".json", 40), (".json.gz", 25)):
        path = write_trace(folder / f"one{suffix}", 300 * scale)
        ours = min((measure(READ_RANK, path) for _ in range(3)), key=lambda figure: figure["seconds"])
        size = f"{300 * scale:.0f} MB {suffix}, {ours['events']:.0f} events"
        row(f"trisect, {size}", f"{ours['seconds']:.2f} s, peak {ours['peak_mb']:.0f} MB")
        if hta_python:
            theirs = measure(READ_HTA, path, python=hta_python)
            row(f"HolisticTraceAnalysis, {size}", f"{theirs['seconds']:.1f} s, peak {theirs['peak_mb']:.0f} MB")
            row(f"times faster, {suffix}", f"{theirs['seconds'] / ours['seconds']:.1f}", f"at least {times}")
        path.unlink()


def memory(folder: Path, scale: float, large: bool) -> None:
    """Peak memory as the file grows, of both kinds, and of files that are in no order of time."""
    nccl, gloo, backwards = {}, {"host_only": True}, {"backwards": True}
    files = [(300, nccl), (1000, nccl), (3000, nccl), (300, gloo), (3000, gloo), (300, backwards), (1000, backwards)]
    for megabytes, kind in [*files, *([(9000, nccl)] if large else [])]:
        path = write_trace(folder / "large.json", megabytes * scale, **kind)
        figure = measure(READ_RANK, path)
        rate = megabytes * scale / figure["seconds"]
        name = ("gloo" if kind is gloo else "NCCL") + (", last iteration first" if kind is backwards else "")
        what = f"trisect, {megabytes * scale:.0f} MB .json, {name}"
        target = "" if kind is backwards else "under 400 MB"
        row(what, f"{figure['seconds']:.2f} s ({rate:.0f} MB/s), peak {figure['peak_mb']:.0f} MB", target)
        path.unlink()


def many_ranks(folder: Path, scale: float) -> None:
    """A job of many ranks with one process and with two."""
    job = write_ranks(folder / "job", 64, 20 * scale)
    one, two = (
        min((measure(READ_JOB, job, cores, cores=cores) for _ in range(3)), key=lambda figure: figure["seconds"])
        for cores in (1, 2)
    )
    for figure, how in ((one, "one process on one core"), (two, "two processes on two cores")):
        times = f"{figure['seconds']:.2f} s, {figure['processor']:.2f} s of processors"
        row(f"64 ranks of {20 * scale:.0f} MB, {how}", times)
    row("two over one", f"{two['seconds'] / one['seconds']:.2f}", "at most 0.6")


def linearity(folder: Path) -> None:
    """Time by number of ranks, each of one iteration."""
    for ranks in (64, 256, 1024):
        job = write_ranks(folder / f"ranks-{ranks}", ranks, 1)
        seconds = measure(READ_JOB, job, 1)["seconds"]
        size = (job / "rank-0000.json").stat().st_size / 1e6
        row(f"{ranks} ranks of {size:.0f} MB, one core", f"{seconds:.2f} s, {1000 * seconds / ranks:.1f} ms a rank")
        shutil.rmtree(job)


def main() -> None:
    """Run all parts; the folder is emptied again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of every size")
    parser.add_argument("--large", action="store_true", help="also a file of 9 GB")
    parser.add_argument("--folder", type=Path, default=None, help="where to write traces (default: a temporary folder)")
    own = sys.executable if importlib.util.find_spec("hta") else None
    parser.add_argument("--hta-python", default=own, help="an interpreter with HolisticTraceAnalysis 0.5.0")
    options = parser.parse_args()
    scale = 0.1 if options.quick else 1.0
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        row("what", "measured", "target")
        row("---", "---", "---")
        against_hta(Path(folder), scale, options.hta_python)
        memory(Path(folder), scale, options.large)
        many_ranks(Path(folder), scale)
        linearity(Path(folder))
    print(f"\n{time.perf_counter() - began:.0f} s in all", file=sys.stderr)


if __name__ == "__main__":
    main()
