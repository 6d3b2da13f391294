"""What the worker adds to a plain deepinv loop, what the profiler adds to the worker, and the time of a dry run.

    python benchmarks/worker.py [--ranks 2] [--rounds 12] [--experiment inference_2d ...]

Each ratio is of medians of loops of iterations that alternate in one process: a drift of the machine's speed cancels.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
import yaml
from torch.profiler import ProfilerActivity, profile, record_function

from trisect.config.loading import load
from trisect.config.plan import Run
from trisect.worker.process_group import join
from trisect.worker.profiling import iterate
from trisect.worker.solver import Inference, Solver, Training, build


def plain(solver: Solver) -> None:
    """One iteration as a deepinv user writes it: no sections, no barrier."""
    if isinstance(solver, Inference):
        with torch.no_grad():
            gradient = solver.fidelity.grad(solver.image, solver.scene.measurements, solver.physics)
            x = solver.image - solver.step * gradient
            solver.image = x.lerp(solver.tiling(x, solver.sigma), solver.denoised_share)
    elif isinstance(solver, Training):
        solver.model.zero_grad(set_to_none=True)
        image = solver.model(solver.scene.measurements, solver.physics)
        torch.nn.functional.mse_loss(image, solver.scene.truth).backward()


LOOP = 5
"""Iterations per timing: within a loop, ranks of a plain one run ahead of each other as they do for a user."""


def timed_plain(solver: Solver) -> float:
    """Seconds per iteration of a plain loop, until the last rank is done."""
    start = time.perf_counter()
    for _ in range(LOOP):
        plain(solver)
    dist.barrier()
    return (time.perf_counter() - start) / LOOP


Iteration = Callable[[], float]


def alternate(first: Iteration, second: Iteration, rounds: int) -> tuple[float, float]:
    """Median seconds of two kinds of iteration that take turns; each round turns the order round."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for k in range(rounds):
        for which in (0, 1) if k % 2 else (1, 0):
            seconds[which].append((first, second)[which]())
            dist.barrier()
    return statistics.median(seconds[0]), statistics.median(seconds[1])


def measure(rank: int, ranks: int, port: int, run: Run, rounds: int, results: str) -> None:
    """One rank: plain against worker, then worker without against with the profiler; rank 0 writes the medians."""
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank)}
    os.environ |= {"LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    with join(run, run.seed) as ctx:
        solver = build(run, ctx)

        def worker() -> float:
            return sum(iterate(solver, ctx, record_function) for _ in range(LOOP)) / LOOP

        def profiled() -> float:
            with profile(activities=[ProfilerActivity.CPU], record_shapes=True):
                return worker()

        alternate(worker, profiled, 2)
        plain_s, worker_s = alternate(lambda: timed_plain(solver), worker, rounds)
        off_s, on_s = alternate(worker, profiled, rounds)
    if rank == 0:
        medians = {"plain_s": plain_s, "worker_over_plain": worker_s / plain_s, "on_over_off": on_s / off_s}
        Path(results).write_text(yaml.safe_dump(medians))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def dry_run_s() -> float:
    """Median of three `snakemake -n` of the shipped sweep."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "snakemake", "-n", "sweep"], capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--experiment", nargs="+", default=["inference_2d", "training_2d"])
    arguments = parser.parse_args()
    sweep = load(yaml.safe_load(Path("config/config.yaml").read_text()), Path("config"))
    for name in arguments.experiment:
        run = sweep.run(name, arguments.ranks)
        with tempfile.TemporaryDirectory() as folder:
            results = Path(folder) / "medians.yaml"
            rest = (arguments.ranks, free_port(), run, arguments.rounds, str(results))
            torch.multiprocessing.spawn(measure, args=rest, nprocs=arguments.ranks)
            medians = yaml.safe_load(results.read_text())
        print(f"{name}, {arguments.ranks} ranks, medians of {arguments.rounds}:")
        print(f"  plain deepinv loop {medians['plain_s']:.4f} s")
        print(f"  worker over plain loop {medians['worker_over_plain']:.3f} (aim: at most 1.02)")
        print(f"  profiler on over off {medians['on_over_off']:.3f}")
    print(f"snakemake -n of the whole sweep: {dry_run_s():.2f} s (aim: under 4)")


if __name__ == "__main__":
    main()
