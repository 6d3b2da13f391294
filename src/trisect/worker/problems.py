"""The imaging problems: one function each, found by the name that an experiment's file gives.

A new problem is one function here with `@problem`, and one YAML file in config/experiments/. docs/problems.md has two.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from deepinv.physics import Blur, Denoising, Downsampling, LinearPhysics
from deepinv.physics.forward import compose
from deepinv.physics.functional import gaussian_blur

from trisect.config.experiment import Experiment
from trisect.config.fields import nearest
from trisect.errors import TrisectError

Noise = Callable[[torch.Tensor, float, torch.Generator], torch.Tensor]
"""Noisy measurements from clean ones, the size's `noise`, and the generator to draw from."""


def gaussian(clean: torch.Tensor, sigma: float, generator: torch.Generator) -> torch.Tensor:
    """Independent Gaussian noise of this standard deviation; drawn on CPU, so that every device gets the same."""
    drawn = torch.randn(clean.shape, generator=generator, dtype=clean.real.dtype)
    return clean + sigma * drawn.to(clean.device)


def clamped(clean: torch.Tensor, sigma: float, generator: torch.Generator) -> torch.Tensor:
    """The same, clamped to [0, 1] as a camera does."""
    return gaussian(clean, sigma, generator).clamp_(0, 1)


@dataclass(frozen=True)
class Acquisition:
    """What a problem is made of. None leaves it to the size."""

    operator: Callable[[int], LinearPhysics]
    """Acquisition operator k, on the device."""
    truth: torch.Tensor | None = None
    """The image, shape (1, channels, ...); None: the size's, else `ellipsoids`."""
    noise: Noise = gaussian
    """How measurements are disturbed."""
    step: float | None = None
    """Step of the gradient; None: 1 / operators, right for operators of norm 1 at most."""


ProblemFunction = Callable[..., Acquisition]
"""Called with the image's shape (channels, then pixels per axis), the number of operators, the device, and the
parameters of the experiment's file."""

PROBLEMS: dict[str, ProblemFunction] = {}
"""By an experiment's `problem`."""


def problem(function: ProblemFunction) -> ProblemFunction:
    """Register a problem by its function's name."""
    PROBLEMS[function.__name__] = function
    return function


def acquisition(experiment: Experiment, image: Sequence[int], device: torch.device) -> Acquisition:
    """An experiment's problem for images of this shape.

    Raises:
        TrisectError: no such problem, or parameters that it does not take.
    """
    if experiment.problem not in PROBLEMS:
        raise TrisectError(
            f"problem: no {experiment.problem!r} in trisect.worker.problems{nearest(experiment.problem, PROBLEMS)}"
        )
    function, parameters = PROBLEMS[experiment.problem], experiment.parameters
    known = list(inspect.signature(function).parameters)[3:]
    for name in parameters:
        if name not in known:
            raise TrisectError(f"parameters: {experiment.problem} takes no {name!r}{nearest(name, known)}")
    with _one_line(experiment.problem):
        made = function(tuple(image), experiment.operators, device, **parameters)

    def operator(k: int) -> LinearPhysics:
        with _one_line(experiment.problem):
            return made.operator(k)

    return replace(made, operator=operator)


@contextmanager
def _one_line(problem: str) -> Iterator[None]:
    try:
        yield
    except (TypeError, ValueError) as error:
        raise TrisectError(f"problem: {problem} does not take its parameters or image: {error}") from error


@problem
def denoising(image: Sequence[int], operators: int, device: torch.device) -> Acquisition:
    """The image itself, seen several times with independent noise."""
    return Acquisition(lambda k: Denoising(device=device), noise=clamped)


_FFT_FROM = {2: 9, 3: 5}
"""By the image's axes: from this width of a kernel on, a GPU convolves by FFT. On CPU that is faster at every width."""


def _blur(psf: torch.Tensor, device: torch.device) -> Blur:
    """A circular blur, by FFT where that is faster."""
    width, axes = psf.shape[-1], psf.ndim - 2
    return Blur(filter=psf, padding="circular", use_fft=device.type == "cpu" or width >= _FFT_FROM[axes], device=device)


@problem
def super_resolution(
    image: Sequence[int], operators: int, device: torch.device, factor: int = 2, kernel: int = 5, sigma: Any = 1.0
) -> Acquisition:
    """Frames of one scene: blurred by a Gaussian at one angle a frame, then every `factor`-th pixel kept.

    `sigma` is a number, or one per axis of the Gaussian. A blur composed with plain subsampling: deepinv's
    Downsampling with a filter keeps full-size spectra.
    """
    if any(n % factor for n in image[1:]):
        raise ValueError(f"factor {factor} does not divide the image's {list(image[1:])} pixels")

    def frame(k: int) -> LinearPhysics:
        psf = gaussian_blur((kernel, kernel), _sigma(sigma), angle=180.0 * k / operators, device=str(device))
        sampled = Downsampling(img_size=tuple(image), filter=None, factor=factor, device=device)
        return compose(_blur(psf, device), sampled)

    return Acquisition(frame, noise=clamped)


@problem
def deconvolution(
    image: Sequence[int], operators: int, device: torch.device, kernel: int = 7, sigma: Any = 1.0
) -> Acquisition:
    """One image or volume seen through Gaussian blurs, each as wide again as the first per operator."""
    axes = len(image) - 1

    def blur(k: int) -> LinearPhysics:
        widths = _sigma(sigma) if isinstance(sigma, list) else (float(sigma),) * axes
        psf = gaussian_blur((kernel,) * axes, tuple((1 + k / operators) * one for one in widths), device=str(device))
        return _blur(psf, device)

    return Acquisition(blur, noise=clamped)


def _sigma(sigma: Any) -> Any:
    return tuple(sigma) if isinstance(sigma, list) else float(sigma)
