"""One rank of one run, from joining the process group to the run's record.

The launcher starts `work` in every rank with RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and
MASTER_PORT set; any exception fails the run.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import torch.distributed as dist
from deepinv.distributed import DistributedContext

from trisect.bench import check, device, provenance
from trisect.bench.measure import iterate, measure
from trisect.bench.memory import PeakMemory
from trisect.bench.solver import Solver, build
from trisect.config import Run
from trisect.errors import TrisectError
from trisect.host import write_whole
from trisect.layout import RunLayout
from trisect.record import Correctness, Profiling, RankRecord, RunRecord

T = TypeVar("T")


def work(payload: str, folder: Path) -> None:
    """Measure one run as this rank; rank 0 writes the record last.

    Args:
        payload: `Run.payload()`, the same for every rank.
        folder: the run's folder.

    Raises:
        TrisectError: the device, the backend, the placement or the result is not as it must be.
    """
    run = Run.model_validate_json(payload)
    files = RunLayout(folder)
    device.require(run.device)
    with join(run) as ctx:
        check.require_agreement(ctx, "configurations", run.sha256())
        solver = build(run, ctx)
        measurements = check.require_agreement(ctx, "measurements", check.measurements_sha256(solver.measurements))
        correctness = check.against_single_process(run, ctx, solver)
        memory = PeakMemory(ctx.device)
        for _ in range(1 + run.iterations.warmup):
            iterate(solver, ctx, memory)
        progress = Progress(files.progress if ctx.rank == 0 else None)
        profiling = measure(solver, ctx, run.iterations, files.trace(ctx.rank), progress)
        tiles, operators = len(solver.tiling.local_indices), solver.operators_held
        mine = provenance.rank_record(ctx.rank, ctx.device, tiles, operators, memory.peak_bytes)
        ranks = gather(mine, ctx.world_size)
        hosts = provenance.cores_by_host(gather(provenance.host_and_cores(), ctx.world_size))
        if ctx.rank == 0:
            record(run, solver, ranks, hosts, measurements, correctness, profiling).write(files.record)
        dist.barrier()


@contextmanager
def join(run: Run) -> Iterator[DistributedContext]:
    """The process group and deepinv's context on it, on the named backend, left again at the end.

    Raises:
        TrisectError: another backend came up, the world has another size, or two ranks share a GPU.
    """
    timeout = timedelta(seconds=run.collective_timeout_s)
    dist.init_process_group(run.backend, timeout=timeout)
    try:
        mode = "gpu" if run.device == "cuda" else "cpu"
        with DistributedContext(backend=run.backend, seed=run.seed, seed_offset=False, device_mode=mode) as ctx:
            if dist.get_backend() != run.backend:
                raise TrisectError(f"backend: {run.backend} was asked for, {dist.get_backend()} came up")
            if ctx.world_size != run.gpus:
                raise TrisectError(f"gpus: {run.gpus} ranks were asked for, {ctx.world_size} joined")
            _require_distinct_devices(ctx)
            yield ctx
    finally:
        dist.destroy_process_group()


def _require_distinct_devices(ctx: DistributedContext) -> None:
    uuids = gather(device.describe(ctx.device)[1], ctx.world_size)
    for rank, uuid in enumerate(uuids):
        first = uuids.index(uuid)
        if uuid is not None and first != rank:
            raise TrisectError(f"device: ranks {first} and {rank} share the GPU {uuid}; give each task its own")


class Progress:
    """Writes "k/m" for the launcher to read, whole or not at all; only rank 0 has a file."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def __call__(self, state: str) -> None:
        if self.path is not None:
            write_whole(self.path, state)


def gather(mine: T, world_size: int) -> list[T]:
    """Every rank's value, on every rank."""
    values = [mine] * world_size
    dist.all_gather_object(values, mine)
    return values


def record(
    run: Run,
    solver: Solver,
    ranks: list[RankRecord],
    hosts: dict[str, int],
    measurements_sha256: str,
    correctness: Correctness,
    profiling: Profiling,
) -> RunRecord:
    """Everything known about the run, on rank 0."""
    size = run.problem_size
    axes = len(size.image) - 1
    effective = solver.tiling._strategy.patch_size  # the only place where deepinv keeps it
    ranks_on = Counter(rank.host for rank in ranks)
    return RunRecord(
        experiment=run.name,
        gpus=run.gpus,
        size=run.size,
        mode=run.experiment.mode,
        sections=run.experiment.sections,
        config=run.model_dump(mode="json"),
        config_sha256=run.sha256(),
        launcher=os.environ.get("TRISECT_LAUNCHER", ""),
        job_id=os.environ.get("TRISECT_JOB_ID", ""),
        backend=dist.get_backend(),
        device=run.device,
        placement_as_intended=[r.host for r in ranks] == list(ranks_on.elements()),
        versions=provenance.versions(),
        git_revision=provenance.git_revision(),
        environment=provenance.environment(),
        hosts=hosts,
        oversubscribed=run.device == "cpu" and any(n > hosts[host] for host, n in ranks_on.items()),
        tiles=solver.tiling.num_patches,
        operators=run.experiment.operators,
        patch_requested=[size.patch] * axes,
        patch_effective=[effective] * axes if isinstance(effective, int) else list(effective),
        load_balance_bound=run.bounds(),
        iterations=run.iterations.model_dump(),
        measurements_sha256=measurements_sha256,
        correctness=correctness,
        profiling=profiling,
        psnr_db=check.psnr_db(solver.image, solver.truth),
        ranks=ranks,
    )
