"""Is the result right? All ranks measured the same thing, and together compute what one process computes."""

import hashlib
import math
from collections.abc import Mapping
from contextlib import nullcontext

import torch
from deepinv.distributed import DistributedContext

from trisect.config.plan import Run
from trisect.errors import TrisectError
from trisect.results.record import Correctness
from trisect.worker.process_group import gather
from trisect.worker.solver import Solver, build

CHECKED_ITERATIONS = 2
"""Enough for the second iteration to start from what the first one's collectives produced."""


def against_single_process(run: Run, ctx: DistributedContext, solver: Solver) -> Correctness:
    """Compare the distributed solver with the same solver in one process, on rank 0.

    Where the size has `check_at`, both are built at that smaller size: the measured one may not fit on one device.

    Raises:
        TrisectError: on every rank, if a difference exceeds the experiment's tolerance.
    """
    size = run.problem_size.check_at or run.size
    at_size = run.model_copy(update={"size": size})
    distributed = solver if size == run.size else build(at_size, ctx)
    _iterate_from_start(distributed)
    mine: dict[str, float] = {}
    if ctx.rank == 0:
        single = build(at_size, alone(ctx.device))
        _iterate_from_start(single)
        mine = relative_differences(distributed.results(), single.results())
    found, tolerance = gather(mine, ctx.world_size)[0], run.experiment.tolerance
    require_equal(found, tolerance)
    distributed.restart()
    return Correctness(relative_difference=found, tolerance=tolerance, size=size, iterations=CHECKED_ITERATIONS)


def alone(device: torch.device) -> DistributedContext:
    """A context of one process beside the process group: deepinv's own single-process path."""
    ctx = DistributedContext()
    ctx.device = device
    return ctx


def _iterate_from_start(solver: Solver) -> None:
    solver.restart()
    for _ in range(CHECKED_ITERATIONS):
        solver.iterate(lambda _: nullcontext())


def relative_differences(found: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor]) -> dict[str, float]:
    """Per quantity, the norm of the difference over the norm of what is expected."""
    return {
        name: float(torch.linalg.vector_norm(found[name] - value) / torch.linalg.vector_norm(value))
        for name, value in expected.items()
    }


def require_equal(differences: Mapping[str, float], tolerance: float) -> None:
    """Refuse a result that is wrong.

    Raises:
        TrisectError: a difference above the tolerance, or not a number.
    """
    for name, difference in differences.items():
        if not difference <= tolerance:
            raise TrisectError(
                f"the distributed {name} differs from the single-process one by {difference:.2g} "
                f"of its norm, over the tolerance {tolerance:.2g}; its times are not worth keeping"
            )


def measurements_sha256(measurements: list[torch.Tensor]) -> str:
    """One hash over all measurements, shapes and values."""
    digest = hashlib.sha256()
    for measurement in measurements:
        digest.update(str(tuple(measurement.shape)).encode())
        digest.update(measurement.contiguous().cpu().numpy().tobytes())
    return digest.hexdigest()


def require_agreement(ctx: DistributedContext, what: str, mine: str) -> str:
    """Refuse to go on unless every rank holds the same value; returns it.

    Raises:
        TrisectError: on every rank, naming the ranks that differ from rank 0.
    """
    values = gather(mine, ctx.world_size)
    others = [rank for rank, value in enumerate(values) if value != values[0]]
    if others:
        raise TrisectError(f"{what} differ between rank 0 and rank {', '.join(map(str, others))}; nothing was measured")
    return mine


def psnr_db(image: torch.Tensor, truth: torch.Tensor) -> float:
    """Peak signal-to-noise ratio of an image against the ground truth, whose peak is 1."""
    return -10 * math.log10(float(torch.mean((image - truth) ** 2)))
