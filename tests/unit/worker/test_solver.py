"""One iteration is the formula it stands for, section by section."""

from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from problems_at import CPU, small

from trisect.errors import TrisectError
from trisect.worker.correctness import alone, psnr_db
from trisect.worker.drunet import denoiser, near_identity
from trisect.worker.solver import Inference, Training, build
from trisect.worker.tiling import effective_patch


class Opened:
    """Remembers the sections that were opened, in order."""

    def __init__(self) -> None:
        self.names: list[str] = []

    @contextmanager
    def __call__(self, name: str):  # type: ignore[no-untyped-def]
        self.names.append(name)
        yield


def test_inference_iteration_is_a_gradient_step_then_the_denoiser_on_tiles() -> None:
    run = small(size={"start": "adjoint"})
    solver = build(run, alone(CPU))
    assert isinstance(solver, Inference)
    opened, start = Opened(), solver.image.clone()
    operators = [solver.scene.acquisition.operator(k) for k in range(3)]
    pairs = list(zip(operators, solver.scene.measurements, strict=True))
    torch.testing.assert_close(start, sum(a.A_adjoint(y) for a, y in pairs) / 3)
    step = start - sum(a.A_adjoint(a.A(start) - y) for a, y in pairs) / 3
    solver.iterate(opened)
    with torch.no_grad():
        expected = tiled(denoiser(run), step, patch=32, overlap=8, sigma=run.experiment.denoiser_sigma)
    assert opened.names == run.experiment.sections == ["gradient", "denoiser"]
    torch.testing.assert_close(solver.image, expected, rtol=1e-4, atol=1e-6)


def test_starts() -> None:
    assert build(small(size={"start": "zeros"}), alone(CPU)).image.abs().max() == 0
    assert build(small(), alone(CPU)).image.abs().max() == 0
    mean = build(small(problem="denoising", size={"start": "pseudo_inverse"}), alone(CPU))
    torch.testing.assert_close(mean.image, torch.stack(mean.scene.measurements).mean(dim=0))


def test_relaxation_keeps_a_share_of_the_image_before_the_denoiser() -> None:
    """x = (1 - a) z + a D(z), a = step lambda / (1 + step lambda)."""
    whole, relaxed = (build(small(relaxation=value, size={"step": 0.25}), alone(CPU)) for value in (None, 4))
    whole.iterate(Opened())
    seen = []
    plain = relaxed.tiling.forward
    relaxed.tiling.forward = lambda z, *rest: seen.append(z) or plain(z, *rest)
    relaxed.iterate(Opened())
    torch.testing.assert_close(relaxed.image, 0.5 * seen[0] + 0.5 * whole.image, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("axes", [2, 3])
def test_one_patch_and_overlap_per_axis(axes: int) -> None:
    """As deepinv lays them out, against tiles cut here."""
    image, patch, overlap = ([1, 64, 96], [32, 48], [8, 0]) if axes == 2 else ([1, 32, 64, 32], [16, 32, 16], [8, 0, 8])
    run = small(size={"image": image, "patch": patch, "overlap": overlap})
    solver = build(run, alone(CPU))
    solver.iterate(Opened())
    assert list(effective_patch(solver.tiling, run.problem_size)) == patch
    assert solver.tiling.num_patches == run.problem_size.tiles == (4 if axes == 2 else 8)


def test_an_untiled_image_is_one_tile() -> None:
    run = small(size={"patch": "none"})
    solver = build(run, alone(CPU))
    seen = []
    plain = solver.tiling.processor.forward
    solver.tiling.processor.forward = lambda z, *rest: seen.append(z.shape) or plain(z, *rest)
    solver.iterate(Opened())
    assert seen == [(1, 1, 64, 64)]
    assert (solver.tiling.num_patches, run.problem_size.tiles, run.problem_size.tile_work) == (1, 1, 1)
    assert list(effective_patch(solver.tiling, run.problem_size)) == [64, 64]


def test_batches_are_of_so_many_tiles() -> None:
    solver = build(small(size={"batch": 3}), alone(CPU))
    seen = []
    plain = solver.tiling.processor.forward
    solver.tiling.processor.forward = lambda z, *rest: seen.append(len(z)) or plain(z, *rest)
    solver.iterate(Opened())
    assert seen == [3, 1]


@pytest.mark.parametrize(
    ("checkpoint", "batch", "again"), [("always", 4, 1), ("never", 1, 0), ("auto", 4, 0), ("auto", 1, 1)]
)
def test_checkpointing_computes_every_batch_again_in_backward(checkpoint: str, batch: int, again: int) -> None:
    """And is what the run says of itself."""
    run = small("training", size={"checkpoint": checkpoint, "batch": batch})
    solver = build(run, alone(CPU))
    calls = []
    plain = solver.tiling.processor.forward_unet
    solver.tiling.processor.forward_unet = lambda z: calls.append(len(z)) or plain(z)
    solver.iterate(Opened())
    assert len(calls) == (1 + again) * (4 // batch)
    assert run.checkpointing() == {0: bool(again)}


def test_inference_s_denoiser_is_in_eval_mode_and_training_s_is_not() -> None:
    assert not build(small(), alone(CPU)).tiling.processor.training
    assert build(small("training"), alone(CPU)).tiling.processor.training


@pytest.mark.parametrize("precision", ["fp32", "amp"])
def test_the_denoiser_computes_in_the_precision_that_is_asked_for(precision: str) -> None:
    for mode in ("inference", "training"):
        solver = build(small(mode, precision=precision), alone(CPU))
        seen = set()
        solver.tiling.processor.m_body.register_forward_hook(lambda m, x, y, seen=seen: seen.add(y.dtype))
        solver.iterate(Opened())
        assert seen == {torch.float32 if precision == "fp32" else torch.bfloat16}
        assert solver.image.dtype == torch.float32


@pytest.mark.parametrize(("channels", "widths"), [(1, (2, 4, 8, 16)), (3, (32, 48, 64, 64)), (3, (2, 2, 2, 2))])
@pytest.mark.parametrize("axes", [2, 3])
def test_near_identity_changes_little_and_reaches_every_weight(
    channels: int, widths: tuple[int, ...], axes: int
) -> None:
    from deepinv.models import DRUNet

    torch.manual_seed(0)
    network = DRUNet(channels, channels, nc=widths, nb=1, pretrained=None, dim=axes)
    near_identity(network)
    x = torch.rand(1, channels, *(32,) * axes)
    changed = network(x, 0.05) - x
    passed = min(channels, widths[0])
    assert 1e-4 < (changed[:, :passed].norm() / x.norm()).item() < 0.05
    changed.square().mean().backward()
    assert all(parameter.grad.norm() > 0 for parameter in network.parameters())


def test_near_identity_keeps_the_image_over_iterations() -> None:
    """Random weights made it a black one, after which nothing was checked."""
    solver = build(small(problem="denoising", size={"noise": 0.02}), alone(CPU))
    for _ in range(5):
        solver.iterate(Opened())
    assert psnr_db(solver.image, solver.scene.truth) > 30


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
    run = small("training", unrolled_iterations=2)
    solver = build(run, alone(CPU))
    assert isinstance(solver, Training)
    opened = Opened()
    solver.iterate(opened)
    assert opened.names == run.experiment.sections == ["forward", "backward"]
    missing = [name for name, p in solver.model.named_parameters() if p.requires_grad and p.grad is None]
    assert missing == []


def test_training_gradient_is_the_derivative_of_the_loss() -> None:
    solver = build(small("training", unrolled_iterations=2), alone(CPU))
    solver.iterate(Opened())
    weight = solver.tiling.processor.m_tail.weight
    direction, losses = weight.grad / weight.grad.norm(), {}
    slope = float((weight.grad * direction).sum())
    for step in (1e-2, -2e-2):
        with torch.no_grad():
            weight += step * direction
        solver.iterate(Opened())
        losses[step] = float(solver.results()["loss"])
    assert (losses[1e-2] - losses[-2e-2]) / 2e-2 == pytest.approx(slope, rel=0.05)


def test_weights_of_another_network_are_refused(tmp_path: Path) -> None:
    torch.save({"other": torch.zeros(1)}, tmp_path / "weights.pt")
    with pytest.raises(TrisectError, match=r"weights: .*weights.pt does not hold this DRUNet"):
        denoiser(small(size={"weights": str(tmp_path / "weights.pt")}))


def test_weights_from_a_file_are_used(tmp_path: Path) -> None:
    network = denoiser(small())
    changed = {name: value + 1 for name, value in network.state_dict().items()}
    torch.save(changed, tmp_path / "weights.pt")
    loaded = denoiser(small(size={"weights": str(tmp_path / "weights.pt")}))
    assert all(torch.equal(value, changed[name]) for name, value in loaded.state_dict().items())
