"""One iteration is the formula it stands for, section by section."""

from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from trisect.config.experiment import Experiment, Size
from trisect.config.plan import Run
from trisect.config.settings import Iterations
from trisect.errors import TrisectError
from trisect.worker.correctness import alone
from trisect.worker.problems import operator_factory
from trisect.worker.solver import Inference, Training, build, denoiser

CPU = torch.device("cpu")


def tiny(mode: str = "inference", **changes: object) -> Run:
    size = Size(image=[1, 24, 24], patch=8, overlap=4, denoiser_channels=[2, 2, 4, 4], denoiser_blocks=1)
    experiment = Experiment.model_validate(
        {"problem": "deconvolution_2d", "mode": mode, "operators": 3, "sizes": {"tiny": size.model_dump()}, **changes}
    )
    return Run(
        name="tiny",
        gpus=1,
        size="tiny",
        experiment=experiment,
        iterations=Iterations(),
        seed=0,
        device="cpu",
        backend="gloo",
        environment={},
        collective_timeout_s=60,
    )


class Opened:
    """Remembers the sections that were opened, in order."""

    def __init__(self) -> None:
        self.names: list[str] = []

    @contextmanager
    def __call__(self, name: str):  # type: ignore[no-untyped-def]
        self.names.append(name)
        yield


def test_inference_iteration_is_a_gradient_step_then_the_denoiser_on_tiles() -> None:
    run = tiny()
    solver = build(run, alone(CPU))
    assert isinstance(solver, Inference)
    opened, start = Opened(), solver.image.clone()
    operators = [operator_factory("deconvolution_2d", [1, 24, 24])(k, CPU, None) for k in range(3)]
    residuals = zip(operators, solver.measurements, strict=True)
    step = start - sum(a.A_adjoint(a.A(start) - y) for a, y in residuals) / 3
    solver.iterate(opened)
    with torch.no_grad():
        expected = tiled(denoiser(run), step, patch=8, overlap=4, sigma=run.experiment.denoiser_sigma)
    assert opened.names == run.experiment.sections == ["gradient", "denoiser"]
    torch.testing.assert_close(solver.image, expected, rtol=1e-4, atol=1e-6)


def tiled(network: torch.nn.Module, x: torch.Tensor, patch: int, overlap: int, sigma: float) -> torch.Tensor:
    """Each tile denoised with its surroundings and put back without them; the image mirrored at its edges."""
    padded = torch.nn.functional.pad(x, (overlap,) * 4, mode="reflect")
    out = torch.empty_like(x)
    for i in range(0, x.shape[2], patch):
        for j in range(0, x.shape[3], patch):
            tile = network(padded[:, :, i : i + patch + 2 * overlap, j : j + patch + 2 * overlap], sigma)
            inner = slice(overlap, overlap + patch)
            out[:, :, i : i + patch, j : j + patch] = tile[:, :, inner, inner]
    return out


def test_training_step_backpropagates_to_every_weight() -> None:
    run = tiny("training", unrolled_iterations=2)
    solver = build(run, alone(CPU))
    assert isinstance(solver, Training)
    opened = Opened()
    solver.iterate(opened)
    assert opened.names == run.experiment.sections == ["forward", "backward"]
    missing = [name for name, p in solver.model.named_parameters() if p.requires_grad and p.grad is None]
    assert missing == []


def test_training_gradient_is_the_derivative_of_the_loss() -> None:
    solver = build(tiny("training", unrolled_iterations=2), alone(CPU))
    solver.iterate(Opened())
    weight = solver.tiling.processor.m_tail.weight
    slope, before, step = float((weight.grad * weight.grad).sum()), float(solver.results()["loss"]), 1e-2
    with torch.no_grad():
        weight += step * weight.grad / weight.grad.norm()
    solver.iterate(Opened())
    assert float(solver.results()["loss"]) - before == pytest.approx(step * slope**0.5, rel=0.05)


def test_weights_of_another_network_are_refused(tmp_path: Path) -> None:
    torch.save({"other": torch.zeros(1)}, tmp_path / "weights.pt")
    with pytest.raises(TrisectError, match=r"weights: .*weights.pt does not hold this DRUNet"):
        denoiser(tiny(weights=str(tmp_path / "weights.pt")))


def test_weights_from_a_file_are_used(tmp_path: Path) -> None:
    network = denoiser(tiny())
    changed = {name: value + 1 for name, value in network.state_dict().items()}
    torch.save(changed, tmp_path / "weights.pt")
    loaded = denoiser(tiny(weights=str(tmp_path / "weights.pt")))
    assert all(torch.equal(value, changed[name]) for name, value in loaded.state_dict().items())
