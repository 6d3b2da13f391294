"""The distributed plug-and-play solvers, one iteration at a time, cut into named sections."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from deepinv.distributed import DistributedContext, distribute
from deepinv.distributed.framework import DistributedProcessing
from deepinv.optim import PGD
from deepinv.optim.data_fidelity import L2
from deepinv.optim.prior import PnP

from trisect.config.plan import Run
from trisect.worker.drunet import denoiser
from trisect.worker.gradient_sync import repair_gradient_sync
from trisect.worker.precision import autocast, loss_scaler
from trisect.worker.scene import Scene, acquire
from trisect.worker.tiling import tiling

OpenSection = Callable[[str], AbstractContextManager[object]]
"""Opens a section by name: torch.profiler.record_function, a memory probe, or nothing."""


class Solver(ABC):
    """One iteration at a time, its sections opened through what the caller passes."""

    tiling: DistributedProcessing
    image: torch.Tensor

    def __init__(self, run: Run, scene: Scene, ctx: DistributedContext) -> None:
        self.run, self.scene = run, scene
        self.physics = distribute(
            lambda k, device, shared: scene.acquisition.operator(k),
            ctx,
            num_operators=run.experiment.operators,
            type_object="linear_physics",
        )
        self.operators_held: int = len(self.physics.local_indexes)
        # Operators of norm 1 at most: this step is below the inverse Lipschitz constant of their sum.
        self.step = run.problem_size.step or scene.acquisition.step or 1.0 / run.experiment.operators

    @abstractmethod
    def iterate(self, section: OpenSection) -> None:
        """One iteration, each section inside `section(name)`."""

    @abstractmethod
    def restart(self) -> None:
        """Back to where the first iteration starts from. Collective."""

    @abstractmethod
    def results(self) -> dict[str, torch.Tensor]:
        """What the last iteration computed, by name, to compare with another solver's."""


class Inference(Solver):
    """Plug-and-play: a gradient step over whole operators, then a denoising step over tiles; weights fixed."""

    def __init__(self, run: Run, scene: Scene, ctx: DistributedContext) -> None:
        super().__init__(run, scene, ctx)
        self.fidelity = distribute(L2(), ctx)
        self.tiling = tiling(denoiser(run).requires_grad_(False).eval(), run.problem_size, ctx)
        self.sigma = run.experiment.denoiser_sigma
        weight = self.step * (run.experiment.relaxation or 0)
        self.denoised_share = weight / (1 + weight) if weight else 1.0
        self.restart()

    def restart(self) -> None:
        measured, start = self.scene.measurements, self.run.problem_size.start
        with torch.no_grad():
            if start == "adjoint":
                self.image = self.physics.A_adjoint(measured) * self.step
            elif start == "pseudo_inverse":
                self.image = self.physics.A_dagger(measured)
            else:
                self.image = torch.zeros_like(self.scene.truth)

    def iterate(self, section: OpenSection) -> None:
        with torch.no_grad():
            with section("gradient"):
                gradient = self.fidelity.grad(self.image, self.scene.measurements, self.physics)
                self.image = self.image - self.step * gradient
                del gradient  # an image that need not be held through the denoiser
            with section("denoiser"), autocast(self.run):
                denoised = self.tiling(self.image, self.sigma)
                self.image = denoised if self.denoised_share == 1 else self.image.lerp(denoised, self.denoised_share)

    def results(self) -> dict[str, torch.Tensor]:
        return {"image": self.image}


class Training(Solver):
    """The same iteration unrolled a fixed number of times and backpropagated through; weights are not stepped.

    A step of the optimizer belongs to neither section and would make iterations differ, so it is left out.
    """

    def __init__(self, run: Run, scene: Scene, ctx: DistributedContext) -> None:
        super().__init__(run, scene, ctx)
        repair_gradient_sync()
        unrolled = PGD(
            data_fidelity=L2(),
            prior=PnP(denoiser(run)),
            stepsize=[self.step] * run.experiment.unrolled_iterations,
            sigma_denoiser=[run.experiment.denoiser_sigma] * run.experiment.unrolled_iterations,
            max_iter=run.experiment.unrolled_iterations,
            unfold=True,
            trainable_params=["stepsize", "g_param"],  # a plug-and-play prior has no weight lambda
        )
        size = run.problem_size
        prior = unrolled.prior[0]
        prior.denoiser = self.tiling = tiling(prior.denoiser, size, ctx)
        self.model = distribute(unrolled, ctx)
        self.scaler = loss_scaler(run)
        self.image = torch.zeros_like(scene.truth)

    def restart(self) -> None:
        """Nothing to do: every training step starts from the measurements."""

    def iterate(self, section: OpenSection) -> None:
        self.model.zero_grad(set_to_none=True)
        with section("forward"), autocast(self.run):
            image = self.model(self.scene.measurements, self.physics)
            self.loss = torch.nn.functional.mse_loss(image, self.scene.truth)
        with section("backward"):
            self.scaler.scale(self.loss).backward()
        self.image = image.detach()

    def results(self) -> dict[str, torch.Tensor]:
        scale = self.scaler.get_scale()
        gradients = {
            f"gradient of {name}": parameter.grad / scale
            for name, parameter in self.model.named_parameters()
            if parameter.grad is not None
        }
        return {"image": self.image, "loss": self.loss.detach()} | gradients


def build(run: Run, ctx: DistributedContext, scene: Scene | None = None) -> Solver:
    """The solver of a run, its tiling laid out, at its start. Collective: every rank of `ctx` calls it.

    `scene` is one that `acquire` made for this context; None makes it.
    """
    kind = Training if run.experiment.training else Inference
    return kind(run, scene or acquire(run, ctx), ctx)
