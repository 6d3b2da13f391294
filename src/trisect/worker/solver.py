"""The distributed plug-and-play solvers, one iteration at a time, cut into named sections."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import torch
from deepinv.distributed import DistributedContext, distribute
from deepinv.distributed.framework import DistributedProcessing
from deepinv.models import DRUNet
from deepinv.optim import PGD
from deepinv.optim.data_fidelity import L2
from deepinv.optim.prior import PnP

from trisect.config.plan import Run
from trisect.errors import TrisectError
from trisect.worker.problems import ground_truth, operator_factory

OpenSection = Callable[[str], AbstractContextManager[object]]
"""Opens a section by name: torch.profiler.record_function, a memory probe, or nothing."""


class Solver(ABC):
    """One iteration at a time, its sections opened through what the caller passes."""

    tiling: DistributedProcessing
    image: torch.Tensor

    def __init__(self, run: Run, ctx: DistributedContext) -> None:
        self.truth, self.measurements = acquire(run, ctx)
        factory = operator_factory(run.experiment.problem, run.problem_size.image)
        operators = run.experiment.operators
        self.physics = distribute(factory, ctx, num_operators=operators, type_object="linear_physics")
        self.operators_held: int = len(self.physics.local_indexes)
        # Each operator has norm 1 at most, so this step is below the inverse Lipschitz constant of the sum.
        self.step = 1.0 / operators

    @abstractmethod
    def iterate(self, section: OpenSection) -> None:
        """One iteration, each section inside `section(name)`."""

    @abstractmethod
    def restart(self) -> None:
        """Back to where the first iteration starts from."""

    @abstractmethod
    def results(self) -> dict[str, torch.Tensor]:
        """What the last iteration computed, by name, to compare with another solver's."""


class Inference(Solver):
    """Plug-and-play: a gradient step over whole operators, then a denoising step over tiles; weights fixed."""

    def __init__(self, run: Run, ctx: DistributedContext) -> None:
        super().__init__(run, ctx)
        self.fidelity = distribute(L2(), ctx)
        self.tiling = distribute(denoiser(run).requires_grad_(False), ctx, **_tiling(run))
        self.sigma = run.experiment.denoiser_sigma
        self.start = self.physics.A_adjoint(self.measurements) * self.step
        self.restart()

    def restart(self) -> None:
        self.image = self.start

    def iterate(self, section: OpenSection) -> None:
        with torch.no_grad():
            with section("gradient"):
                self.image = self.image - self.step * self.fidelity.grad(self.image, self.measurements, self.physics)
            with section("denoiser"):
                self.image = self.tiling(self.image, self.sigma)

    def results(self) -> dict[str, torch.Tensor]:
        return {"image": self.image}


class Training(Solver):
    """The same iteration unrolled a fixed number of times and backpropagated through; weights are not stepped.

    A step of the optimizer belongs to neither section and would make iterations differ, so it is left out.
    """

    def __init__(self, run: Run, ctx: DistributedContext) -> None:
        super().__init__(run, ctx)
        unrolled = PGD(
            data_fidelity=L2(),
            prior=PnP(denoiser(run)),
            stepsize=[self.step] * run.experiment.unrolled_iterations,
            sigma_denoiser=[run.experiment.denoiser_sigma] * run.experiment.unrolled_iterations,
            max_iter=run.experiment.unrolled_iterations,
            unfold=True,
            trainable_params=["stepsize", "g_param"],  # a plug-and-play prior has no weight lambda
        )
        self.model = distribute(unrolled, ctx, **_tiling(run))
        self.tiling = self.model.prior[0].denoiser
        self.image = torch.zeros_like(self.truth)

    def restart(self) -> None:
        """Nothing to do: every training step starts from the measurements."""

    def iterate(self, section: OpenSection) -> None:
        self.model.zero_grad(set_to_none=True)
        with section("forward"):
            image = self.model(self.measurements, self.physics)
            self.loss = torch.nn.functional.mse_loss(image, self.truth)
        with section("backward"):
            self.loss.backward()
        self.image = image.detach()

    def results(self) -> dict[str, torch.Tensor]:
        gradients = [p.grad.flatten() for p in self.model.parameters() if p.grad is not None]
        return {"image": self.image, "loss": self.loss.detach(), "gradient": torch.cat(gradients)}


def build(run: Run, ctx: DistributedContext) -> Solver:
    """The solver of a run, its tiling laid out, at its start. Collective: every rank of `ctx` calls it."""
    return Inference(run, ctx) if run.experiment.mode == "inference" else Training(run, ctx)


def acquire(run: Run, ctx: DistributedContext) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Ground truth and noisy measurements. Rank 0 makes the measurements and broadcasts them, so that all agree.

    Returns:
        The image, shape (1, channels, ...), and one measurement per operator.
    """
    truth = ground_truth(run.problem_size.image, run.seed, ctx.device)
    factory = operator_factory(run.experiment.problem, run.problem_size.image)
    generator = torch.Generator().manual_seed(run.seed + 1)
    measurements = []
    for k in range(run.experiment.operators):
        clean = factory(k, ctx.device, None).A(truth)
        noise = torch.randn(clean.shape, generator=generator).to(ctx.device)
        measurements.append(ctx.broadcast((clean + run.experiment.noise_sigma * noise).contiguous(), src=0))
    return truth, measurements


def denoiser(run: Run) -> DRUNet:
    """The experiment's DRUNet: weights from the given file, else random from the seed, equal on every rank.

    Raises:
        TrisectError: the file does not hold weights of a DRUNet of this size.
    """
    size = run.problem_size
    channels = size.image[0]
    torch.manual_seed(run.seed)
    widths, axes = tuple(size.denoiser_channels), len(size.image) - 1
    network = DRUNet(channels, channels, nc=widths, nb=size.denoiser_blocks, pretrained=None, dim=axes)
    if run.experiment.weights is not None:
        _load(network, Path(run.experiment.weights), run.size)
    return network


def _load(network: DRUNet, weights: Path, size: str) -> None:
    try:
        network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    except Exception as error:  # torch.load raises what the bytes happen to provoke
        reason = " ".join(str(error).split())[:300]
        raise TrisectError(f"weights: {weights} does not hold this DRUNet at size {size}: {reason}") from error


def _tiling(run: Run) -> dict[str, object]:
    size = run.problem_size
    tiles = {"patch_size": size.patch, "overlap": size.overlap, "max_batch_size": size.tiles_per_batch}
    return tiles | {"tiling_dims": tuple(range(2, len(size.image) + 1))}
