"""One rank of one run, from joining the process group to the run's record.

The launcher starts `work` in every rank with RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and
MASTER_PORT set; any exception fails the run.
"""

from pathlib import Path

import torch.distributed as dist

from trisect.config.plan import Run
from trisect.results.layout import RunLayout
from trisect.results.record import Profiling, RankRecord, RunRecord
from trisect.worker import device, provenance
from trisect.worker.correctness import Checked, against_single_process, require_agreement, require_same_inputs
from trisect.worker.memory import PeakMemory
from trisect.worker.pictures import write_pictures
from trisect.worker.precision import arithmetic, set_precision
from trisect.worker.process_group import gather, join, progress_of
from trisect.worker.profiling import iterate, measure
from trisect.worker.solver import Solver, build
from trisect.worker.tiling import effective_patch


def work(payload: str, folder: Path) -> None:
    """Measure one run as this rank; rank 0 writes the record last.

    `payload` is `Run.payload()`, the same for every rank.

    Raises:
        TrisectError: the device, the backend, the placement or the result is not as it must be.
    """
    run = Run.model_validate_json(payload)
    files = RunLayout(folder)
    device.require(run.device)
    with join(run, run.seed) as ctx:
        require_agreement(ctx, "configurations", run.sha256())
        set_precision(run)
        solver = build(run, ctx)
        measurements = require_same_inputs(ctx, solver)
        checked = against_single_process(run, ctx, solver)
        memory = PeakMemory(ctx.device)
        for _ in range(1 + run.iterations.warmup):
            iterate(solver, ctx, memory)
        progress = progress_of(ctx.rank, files.progress)
        profiling = measure(solver, ctx, run.iterations, files.trace(ctx.rank), progress)
        tiles, operators = len(solver.tiling.local_indices), solver.operators_held
        place = provenance.rank_place(ctx.rank, ctx.device)
        mine = RankRecord(
            **place.model_dump(),
            tiles=tiles,
            operators=operators,
            peak_memory_bytes=memory.peak_bytes,
            peak_reserved_bytes=memory.reserved_bytes,
            least_free_bytes=memory.least_free_bytes,
        )
        ranks = gather(mine, ctx.world_size)
        hosts = provenance.cores_by_host(gather(provenance.host_and_cores(), ctx.world_size))
        if ctx.rank == 0:
            write_pictures(checked.pictures, files.reconstruction)
            record(run, solver, ranks, hosts, measurements, checked, profiling).write(files.record)
        dist.barrier()


def record(
    run: Run,
    solver: Solver,
    ranks: list[RankRecord],
    hosts: dict[str, int],
    measurements_sha256: str,
    checked: Checked,
    profiling: Profiling,
) -> RunRecord:
    """Everything known about the run, on rank 0."""
    size = run.problem_size
    return RunRecord(
        **provenance.of_launch(run, ranks, hosts),
        experiment=run.name,
        size=run.size,
        mode=run.experiment.mode,
        sections=run.experiment.sections,
        tiles=solver.tiling.num_patches,
        operators=run.experiment.operators,
        patch_requested=list(size.patches),
        patch_effective=list(effective_patch(solver.tiling, size)),
        tile_work=size.tile_work,
        load_balance_bound=run.bounds(),
        iterations=run.iterations.model_dump(),
        measurements_sha256=measurements_sha256,
        correctness=checked.correctness,
        profiling=profiling,
        quality=checked.quality,
        precision=run.precision,
        arithmetic=arithmetic(solver.tiling.processor),
        ranks=ranks,
    )
