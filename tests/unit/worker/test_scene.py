"""Ground truths and measurements: the same on every rank, and only what a rank holds is kept."""

import pytest
import torch
from deepinv.physics import Blur
from PIL import Image
from problems_at import CPU, small

from trisect.errors import TrisectError
from trisect.worker.correctness import alone
from trisect.worker.problems import PROBLEMS, Acquisition, denoising
from trisect.worker.scene import acquire, ellipsoids, photograph
from trisect.worker.solver import build


def test_ellipsoids_depend_on_the_seed_alone():
    first = ellipsoids([2, 24, 24], 7, CPU)
    torch.manual_seed(99)
    assert torch.equal(first, ellipsoids([2, 24, 24], 7, CPU))
    assert not torch.equal(first, ellipsoids([2, 24, 24], 8, CPU))
    assert 0 <= float(first.min()) < float(first.max()) <= 1


def test_hash_sees_truth_and_measurements():
    first = acquire(small(), alone(CPU))
    assert acquire(small(), alone(CPU)).sha256 == first.sha256
    assert acquire(small(seed=1), alone(CPU)).sha256 != first.sha256
    assert acquire(small(size={"noise": 0.02}), alone(CPU)).sha256 != first.sha256


class OneOfTwo:
    """As much of a context of two ranks as acquiring uses."""

    device = CPU

    def local_indices(self, n):
        return range(1, n, 2)

    def broadcast(self, x, src):
        return x


def test_a_rank_keeps_the_measurements_of_its_operators():
    scene = acquire(small(operators=5), OneOfTwo())
    assert [bool(y.numel()) for y in scene.measurements] == [False, True, False, True, False]
    assert scene.sha256 == acquire(small(operators=5), alone(CPU)).sha256


@pytest.mark.parametrize("channels", [1, 3])
def test_the_shipped_photograph(channels):
    x = photograph("photograph", [channels, 48, 64])
    assert x.shape == (1, channels, 48, 64)
    assert 0 <= float(x.min()) < 0.1 < 0.9 < float(x.max()) <= 1


def test_a_file_is_scaled_and_its_axes_are_rows_and_columns(tmp_path):
    Image.new("RGB", (40, 20), (255, 0, 51)).save(tmp_path / "x.png")
    x = photograph(str(tmp_path / "x.png"), [3, 10, 20])
    assert x[0, :, 3, 7].tolist() == pytest.approx([1, 0, 0.2])
    assert x.shape == (1, 3, 10, 20)


def test_what_is_no_image_is_one_line(tmp_path):
    (tmp_path / "x.png").write_text("no")
    with pytest.raises(TrisectError, match=r"truth: .*x.png is not readable as an image"):
        photograph(str(tmp_path / "x.png"), [1, 8, 8])
    with pytest.raises(TrisectError, match=r"truth: photograph is an image of 1 or 3 channels and 2 axes"):
        photograph("photograph", [1, 8, 8, 8])


@pytest.fixture
def own(monkeypatch):
    """A problem that brings its own truth, noise and step."""

    def brought(image, operators, device):
        known = denoising(image, operators, device)
        return Acquisition(known.operator, torch.full((1, *image), 0.25), lambda y, sigma, generator: y + 1, 0.125)

    monkeypatch.setitem(PROBLEMS, "brought", brought)


def test_a_problem_may_bring_its_own_truth_noise_and_step(own):
    run = small(problem="brought")
    solver = build(run, alone(CPU))
    assert solver.step == 0.125
    assert float(solver.scene.truth.mean()) == 0.25
    assert float(solver.scene.measurements[2].mean()) == 1.25
    assert build(small(problem="brought", size={"step": 0.5}), alone(CPU)).step == 0.5
    assert build(small(operators=8), alone(CPU)).step == 0.125
    with pytest.raises(TrisectError, match=r"problem: its truth has shape \[1, 32, 32\], the size's image"):
        other = Acquisition(denoising([], 1, CPU).operator, torch.zeros(1, 1, 32, 32))
        PROBLEMS["brought"] = lambda image, operators, device: other
        build(run, alone(CPU))


def test_a_size_s_truth_comes_before_the_problem_s(own):
    scene = acquire(small(problem="brought", size={"truth": "photograph"}), alone(CPU))
    assert torch.equal(scene.truth, photograph("photograph", [1, 64, 64]))


def test_an_operator_that_takes_no_such_image_is_one_line(monkeypatch):
    def wrong(image, operators, device):
        return Acquisition(lambda k: Blur(filter=torch.ones(1, 1, 3, 3, 3), padding="circular"))

    monkeypatch.setitem(PROBLEMS, "wrong", wrong)
    with pytest.raises(TrisectError, match=r"problem: operator 0 of wrong takes no image of \[1, 64, 64\]: "):
        acquire(small(problem="wrong"), alone(CPU))
