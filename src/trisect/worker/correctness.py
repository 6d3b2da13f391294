"""Is the result right? All ranks measured the same thing, and together compute what one process computes."""

import math
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from deepinv.distributed import DistributedContext

from trisect.config.experiment import UNTILED, Size
from trisect.config.plan import Run
from trisect.errors import TrisectError
from trisect.results.record import Correctness, Quality
from trisect.worker.drunet import weights_sha256
from trisect.worker.process_group import gather
from trisect.worker.scene import Scene
from trisect.worker.solver import Solver, build

CHECKED_ITERATIONS = {"inference": 2, "training": 1}
"""By mode. A second inference starts from what the first one's collectives made; every training step starts anew."""

SHOWN_ITERATIONS = 10
"""Of an inference with weights of its own, whose PSNR by iteration is kept."""

LARGEST_DIFFERENCE_DB = 0.002
"""Between the PSNR of the distributed and of the single-process result; published of the same solvers."""

ROUNDED = 0.01
"""Of the largest quantity of a kind: what is smaller is compared as if it were so large."""


@dataclass(frozen=True)
class Checked:
    """What the comparison with one process found."""

    correctness: Correctness
    quality: Quality | None  # where the weights are a denoiser's
    pictures: dict[str, torch.Tensor]  # truth, one measurement and result, of rank 0; none without quality


@dataclass(frozen=True)
class Reconstructed:
    """What some iterations from the start gave."""

    results: dict[str, torch.Tensor]
    psnr_db: list[float]  # at the start, and after every iteration


def against_single_process(run: Run, ctx: DistributedContext, solver: Solver) -> Checked:
    """Compare the distributed solver with the same solver in one process, and with an untiled one, on rank 0.

    Where the size has `check_at`, all are built at that smaller size: the measured one may not fit on one device.

    Raises:
        TrisectError: on every rank, if a difference exceeds the experiment's tolerance.
    """
    size = run.problem_size.check_at or run.size
    at_size = run.model_copy(update={"size": size})
    distributed = solver if size == run.size else build(at_size, ctx)
    shown = at_size.problem_size.weights is not None
    iterations = _iterations(run, shown)
    found = _from_start(distributed, iterations)
    differences: dict[str, float] = {}
    quality, pictures = None, {}
    if ctx.rank == 0:
        process = build(at_size, alone(ctx.device))
        single = _from_start(process, iterations)
        differences = relative_differences(found.results, single.results)
        if shown:
            untiled = _untiled(at_size, process.scene, ctx.device, iterations)
            quality = Quality(size=size, psnr_db=found.psnr_db, single_psnr_db=single.psnr_db, untiled_psnr_db=untiled)
            measured = distributed.scene.measurements[0]
            pictures = {"truth": distributed.scene.truth, "measurement": measured, "result": distributed.image}
    differences, quality = gather((differences, quality), ctx.world_size)[0]
    tolerance = run.tolerance
    require_equal(differences, tolerance)
    if quality is not None and run.precision == "fp32":
        require_same_psnr(quality)
    distributed.restart()
    correctness = Correctness(
        relative_difference=worst_by_kind(differences), tolerance=tolerance, size=size, iterations=iterations
    )
    return Checked(correctness, quality, pictures)


def _iterations(run: Run, shown: bool) -> int:
    return SHOWN_ITERATIONS if shown and not run.experiment.training else CHECKED_ITERATIONS[run.experiment.mode]


def _untiled(run: Run, scene: Scene, device: torch.device, iterations: int) -> list[float] | None:
    """PSNR of the whole image denoised at once, in one process; None where DRUNet takes no image of this shape."""
    size = run.problem_size.model_dump() | {"patch": UNTILED, "overlap": 0}
    try:
        whole = Size.model_validate(size)
    except ValueError:
        return None
    sizes = run.experiment.sizes | {run.size: whole}
    untiled = run.model_copy(update={"experiment": run.experiment.model_copy(update={"sizes": sizes})})
    return _from_start(build(untiled, alone(device), scene), iterations).psnr_db


def alone(device: torch.device) -> DistributedContext:
    """A context of one process beside the process group: deepinv's own single-process path."""
    ctx = DistributedContext()
    ctx.device = device
    return ctx


def _from_start(solver: Solver, iterations: int) -> Reconstructed:
    solver.restart()
    quality = [psnr_db(solver.image, solver.scene.truth)]
    for _ in range(iterations):
        solver.iterate(lambda _: nullcontext())
        quality.append(psnr_db(solver.image, solver.scene.truth))
    return Reconstructed(solver.results(), quality)


def relative_differences(found: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor]) -> dict[str, float]:
    """Per quantity, the norm of the difference over the norm of what is expected; infinite where one is missing.

    Names up to the last dot are a kind: a quantity of less than a hundredth of the largest of its kind is taken for
    rounding of others, and its difference is over that hundredth.
    """
    largest: dict[str, float] = {}
    for name, value in expected.items():
        kind = name.rpartition(".")[0] or name
        largest[kind] = max(float(torch.linalg.vector_norm(value)), largest.get(kind, 0.0))
    differences = dict.fromkeys([*expected, *found], math.inf)
    for name in set(found) & set(expected):
        apart, norm = (float(torch.linalg.vector_norm(x)) for x in (found[name] - expected[name], expected[name]))
        scale = max(norm, ROUNDED * largest[name.rpartition(".")[0] or name])
        differences[name] = apart / scale if scale > 0 else (0.0 if apart == 0 else math.inf)
    return differences


def worst_by_kind(differences: Mapping[str, float]) -> dict[str, float]:
    """The largest difference of image, loss and gradient, each: of the gradients of all parameters one."""
    worst: dict[str, float] = {}
    for name, difference in differences.items():
        kind = name.split()[0]
        worst[kind] = max(difference, worst.get(kind, 0.0))
    return worst


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


def require_same_psnr(quality: Quality) -> None:
    """Refuse a result of another quality.

    Raises:
        TrisectError: the distributed and the single-process PSNR differ by more than LARGEST_DIFFERENCE_DB.
    """
    if not quality.largest_difference_db <= LARGEST_DIFFERENCE_DB:
        raise TrisectError(
            f"the distributed result's PSNR differs from the single-process one by {quality.largest_difference_db:.2g}"
            f" dB, over {LARGEST_DIFFERENCE_DB} dB; its times are not worth keeping"
        )


def require_same_inputs(ctx: DistributedContext, solver: Solver) -> str:
    """Refuse to go on unless every rank holds the same truth, measurements and weights; returns the first two's hash.

    Raises:
        TrisectError: on every rank, naming the ranks that differ from rank 0.
    """
    require_agreement(ctx, "denoiser weights", weights_sha256(solver.tiling.processor))
    return require_agreement(ctx, "ground truth or measurements", solver.scene.sha256)


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
    """Peak signal-to-noise ratio of an image against the ground truth, whose peak is 1; infinite where they agree."""
    error = float(torch.mean((image - truth) ** 2))
    return -10 * math.log10(error) if error > 0 else math.inf
