"""The problems are what they say: linear operators with their adjoints, and noise that a camera could have made."""

import pytest
import torch
from problems_at import CPU, small

from trisect.errors import TrisectError
from trisect.worker import problems
from trisect.worker.problems import acquisition, clamped, gaussian

CASES = {
    "super_resolution": ([3, 32, 48], {}),
    "super_resolution_anisotropic": ([3, 32, 48], {"sigma": [1.5, 0.5], "factor": 4, "kernel": 7}),
    "denoising": ([1, 32, 32, 48], {}),
    "denoising_2d": ([3, 32, 48], {}),
    "deconvolution": ([1, 32, 48], {}),
    "deconvolution_3d": ([1, 16, 24, 32], {"kernel": 3}),
}


def made(name, direct=False, monkeypatch=None):
    image, parameters = CASES[name]
    problem = next(known for known in problems.PROBLEMS if name.startswith(known))
    run = small(problem=problem, parameters=parameters, operators=8)
    return image, acquisition(run.experiment, image, CPU)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("k", [0, 3])
def test_adjoint_and_norm(name, k):
    image, problem = made(name)
    torch.manual_seed(k)
    operator = problem.operator(k).to(torch.float64)
    x = torch.rand(1, *image, dtype=torch.float64)
    y = torch.rand_like(operator.A(x))
    assert float((operator.A(x) * y).sum()) == pytest.approx(float((x * operator.A_adjoint(y)).sum()), rel=1e-6)
    assert float(operator.A(x).norm()) <= float(x.norm()) * (1 + 1e-6)


@pytest.mark.parametrize("name", ["super_resolution_anisotropic", "deconvolution"])
def test_operators_are_distinct(name):
    image, problem = made(name)
    x = torch.rand(1, *image)
    outputs = [problem.operator(k).A(x) for k in range(8)]
    for i, first in enumerate(outputs):
        assert all(not torch.allclose(first, other, atol=1e-4) for other in outputs[i + 1 :])


def test_super_resolution_is_a_blur_of_which_every_second_pixel_is_kept():
    """Against a Gaussian written out here, and an image whose borders meet."""
    image, problem = made("super_resolution")
    x, offsets = torch.rand(1, *image), torch.arange(-2.0, 3.0)
    weights = torch.exp(-0.5 * offsets**2)
    kernel = torch.outer(weights, weights) / weights.sum() ** 2
    expected = torch.zeros_like(x)
    for i, down in enumerate(range(-2, 3)):
        for j, right in enumerate(range(-2, 3)):
            expected += kernel[i, j] * x.roll((down, right), (2, 3))
    torch.testing.assert_close(problem.operator(5).A(x), expected[..., ::2, ::2], atol=1e-5, rtol=1e-4)


def test_operators_hold_nothing_as_large_as_the_image():
    """deepinv's own Downsampling with a filter keeps two complex spectra of the image's size."""
    for name in CASES:
        image, problem = made(name)
        held = sum(buffer.numel() for buffer in problem.operator(0).buffers())
        assert held < 0.05 * torch.Size(image).numel() or held <= 49


def test_fft_and_direct_blur_are_the_same(monkeypatch):
    """A GPU convolves small kernels directly, a CPU by FFT."""
    image, problem = made("deconvolution")
    x = torch.rand(1, *image)
    by_fft = problem.operator(1)
    direct = problems.Blur(filter=by_fft.filter, padding="circular", use_fft=False)
    assert by_fft.use_fft
    torch.testing.assert_close(by_fft.A(x), direct.A(x), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(by_fft.A_adjoint(x), direct.A_adjoint(x), atol=1e-5, rtol=1e-4)


def test_noise_is_of_the_asked_level_independent_and_clamped_as_by_a_camera():
    clean, generator = torch.full((1, 1, 200, 200), 0.5), torch.Generator().manual_seed(0)
    first, second = (gaussian(clean, 0.1, generator) - clean for _ in range(2))
    assert float(first.std()) == pytest.approx(0.1, rel=0.02)
    assert abs(float((first * second).mean())) < 1e-3
    dark = clamped(torch.zeros(1, 1, 50, 50), 0.1, generator)
    assert (float(dark.min()), float(dark.max()) > 0.2) == (0.0, True)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"problem": "tomografy"}, r"problem: no 'tomografy' in trisect.worker.problems; there are deconvolution"),
        ({"problem": "denoisin"}, r"problem: no 'denoisin' .*; did you mean 'denoising'\?"),
        ({"parameters": {"kernels": 3}}, r"parameters: deconvolution takes no 'kernels'; did you mean 'kernel'\?"),
        ({"parameters": {"operators": 3}}, r"parameters: deconvolution takes no 'operators'"),
        ({"problem": "super_resolution", "parameters": {"factor": 5}}, "factor 5 does not divide the image's"),
        ({"parameters": {"kernel": "wide"}}, "problem: deconvolution does not take its parameters or image"),
    ],
)
def test_a_wrong_problem_is_one_line(changes, said):
    with pytest.raises(TrisectError, match=said):
        acquisition(small(**changes).experiment, [1, 64, 64], CPU).operator(0)
