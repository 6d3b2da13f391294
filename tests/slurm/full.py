"""The sweep at full width on one host, by hand: 16 nodes of 4 fake GPUs; prints times and memory.

    python tests/slurm/full.py

The real worker at tiny size from 1 to 32 ranks, one count after the other, then 64 ranks that import torch alone
and really all-reduce: 64 real workers would not fit in 24 GiB.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.slurm.cluster import Cluster, why_not
from tests.slurm.conftest import machine_of
from tests.workflow.conftest import make_project
from trisect.config.loading import load
from trisect.launch.job import Job
from trisect.launch.run_job import run_job
from trisect.results.layout import RunLayout

REAL_COUNTS = [1, 2, 4, 8, 16, 32]
GIB = 1 << 30


def main() -> int:
    """Start the cluster, run everything, stop it."""
    reason = why_not()
    if reason:
        print(reason, file=sys.stderr)
        return 2
    folder = Path(tempfile.mkdtemp(prefix="full-"))
    cluster = Cluster(folder / "slurm", nodes=16)
    try:
        print(f"cluster of 16 nodes up after {timed(cluster.start)[0]:.0f} s", flush=True)
        os.environ |= cluster.variables | {"PYTHONPATH": str(Path(__file__).parents[1])}
        for job in jobs(folder):
            layout = RunLayout(folder / "results" / job.name.replace(" ", "-"))
            seconds, gib = timed(lambda job=job, layout=layout: run_job(job, machine_of(), layout, lambda line: None))
            print(f"{job.name:25} {job.ranks:3} ranks {seconds:6.0f} s {gib:6.1f} GiB more in use at most", flush=True)
    finally:
        cluster.stop()
    return 0


def jobs(folder: Path) -> list[Job]:
    """The real worker at each count, then torch alone at 64."""
    project = make_project(folder / "project")
    sweep = load({"experiments": ["inference_2d"], "gpus": [1], "size": "tiny"}, project.folder / "config")
    real = [Job.of(sweep.run("inference_2d", n)) for n in REAL_COUNTS]
    return [*real, Job("all_reduce gpus-64", "standins:all_reduce", "{}", 64, 1)]


def timed(work: Callable[[], None]) -> tuple[float, float]:
    """Seconds that `work` takes, and by how many GiB the memory in use grew at most meanwhile."""
    before = psutil.virtual_memory().available
    lowest = [before]
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.5):
            lowest[0] = min(lowest[0], psutil.virtual_memory().available)

    watcher = threading.Thread(target=look)
    watcher.start()
    begin = time.monotonic()
    try:
        work()
    finally:
        over.set()
        watcher.join()
    return time.monotonic() - begin, (before - lowest[0]) / GIB


if __name__ == "__main__":
    sys.exit(main())
