"""Times and traces: profiled iterations, and some without the profiler, which give the profiling overhead."""

import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import torch.distributed as dist
from deepinv.distributed import DistributedContext
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from trisect.config.settings import Iterations
from trisect.results.record import Profiling
from trisect.worker.device import synchronize
from trisect.worker.solver import OpenSection, Solver


def measure(
    solver: Solver, ctx: DistributedContext, iterations: Iterations, trace: Path, progress: Callable[[str], None]
) -> Profiling:
    """Run the measured iterations and write this rank's trace.

    Half of the unprofiled iterations run before the profiled ones and half after, so that a drift of the
    machine's speed is not taken for profiling overhead.

    Args:
        trace: a path ending in .json.gz; written whole or not at all.
        progress: told "k/m" in every iteration: what it takes is no part of the overhead.
    """
    before, measured = iterations.unprofiled // 2, iterations.measured
    unprofiled_s = [iterate(solver, ctx, _no_section, partial(progress, f"0/{measured}")) for _ in range(before)]
    profiled_s = _profiled(solver, ctx, iterations, trace, progress)
    for _ in range(iterations.unprofiled - before):
        unprofiled_s.append(iterate(solver, ctx, _no_section, partial(progress, f"{measured}/{measured}")))
    overhead = statistics.median(profiled_s) / statistics.median(unprofiled_s)
    return Profiling(profiled_s=profiled_s, unprofiled_s=unprofiled_s, overhead=overhead)


def iterate(
    solver: Solver, ctx: DistributedContext, section: OpenSection, report: Callable[[], None] = lambda: None
) -> float:
    """One iteration closed by a barrier, so that all ranks start the next one together. Returns its seconds.

    `report` is called before the barrier: after it, the only rank that writes would be late in the next section.
    """
    start = time.perf_counter()
    solver.iterate(section)
    synchronize(ctx.device)
    report()
    dist.barrier()
    synchronize(ctx.device)
    return time.perf_counter() - start


def _profiled(
    solver: Solver, ctx: DistributedContext, iterations: Iterations, trace: Path, progress: Callable[[str], None]
) -> list[float]:
    on_cuda = ctx.device.type == "cuda"
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if on_cuda else [])
    steps = schedule(wait=0, warmup=iterations.warmup, active=iterations.measured, repeat=1)
    seconds = []
    # gloo states its payload only in the recorded shapes; NCCL states it in its own kernels' arguments.
    with profile(activities=activities, schedule=steps, record_shapes=not on_cuda) as profiler:
        for k in range(1 - iterations.warmup, iterations.measured + 1):
            report = partial(progress, f"{max(k, 0)}/{iterations.measured}")
            seconds.append(iterate(solver, ctx, record_function, report))
            profiler.step()
    trace.parent.mkdir(parents=True, exist_ok=True)
    unfinished = trace.with_name("." + trace.name)  # torch compresses by the ending, so the ending must stay
    profiler.export_chrome_trace(str(unfinished))
    unfinished.replace(trace)
    return seconds[iterations.warmup :]


def _no_section(_: str) -> nullcontext[None]:
    return nullcontext()
