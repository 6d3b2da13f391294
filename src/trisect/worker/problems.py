"""The imaging problems: one function each, found by the name that an experiment's file gives.

A new physics is one function and its name in `PROBLEMS` here, and one YAML file in config/experiments/.
"""

import math
from collections.abc import Callable, Sequence

import torch
from deepinv.physics import Blur, Downsampling, LinearPhysics

from trisect.errors import TrisectError

OperatorFactory = Callable[[int, torch.device, dict | None], LinearPhysics]
"""Builds acquisition operator k on a device; the signature that deepinv.distributed asks for."""


def operator_factory(name: str, image: Sequence[int]) -> OperatorFactory:
    """The operators of a problem for images of this shape.

    Raises:
        TrisectError: no such problem.
    """
    if name not in PROBLEMS:
        raise TrisectError(f"problem: no {name!r} in trisect.worker.problems; there are {', '.join(sorted(PROBLEMS))}")

    def operator(k: int, device: torch.device, _: dict | None = None) -> LinearPhysics:
        return PROBLEMS[name](image, k, device)

    return operator


def super_resolution(image: Sequence[int], k: int, device: torch.device) -> LinearPhysics:
    """Frames of one scene: shifted by a part of a pixel, blurred, every second pixel kept."""
    kernel = gaussian_kernel(0.8 + 0.1 * k, _shift(k, len(image) - 1), device)
    return Downsampling(img_size=tuple(image), filter=kernel, factor=2, device=device)


def deconvolution(image: Sequence[int], k: int, device: torch.device) -> LinearPhysics:
    """One image or volume seen through distinct blurs."""
    kernel = gaussian_kernel(0.6 + 0.2 * k, _shift(k, len(image) - 1), device)
    return Blur(filter=kernel, padding="circular", device=device)


PROBLEMS: dict[str, Callable[[Sequence[int], int, torch.device], LinearPhysics]] = {
    "super_resolution_2d": super_resolution,
    "deconvolution_2d": deconvolution,
    "deconvolution_3d": deconvolution,
}
"""By an experiment's `problem`: operator k for an image's shape, which is channels, then pixels per axis."""


def gaussian_kernel(sigma: float, shift: Sequence[float], device: torch.device, radius: int = 3) -> torch.Tensor:
    """A Gaussian of unit sum, off-centre by `shift` pixels along each axis; shape (1, 1, 2 radius + 1, ...)."""
    kernel = torch.ones((), device=device)
    for offset in shift:
        position = torch.arange(-radius, radius + 1, device=device) - offset
        kernel = kernel.unsqueeze(-1) * torch.exp(-0.5 * (position / sigma) ** 2)
    return (kernel / kernel.sum())[None, None]


def _shift(k: int, dimensions: int) -> list[float]:
    """Distinct sub-pixel shifts in [-0.5, 0.5): multiples of the square roots of primes spread them evenly."""
    return [math.fmod(k * math.sqrt(prime), 1.0) - 0.5 for prime in (2, 3, 5)[:dimensions]]


def ground_truth(image: Sequence[int], seed: int, device: torch.device) -> torch.Tensor:
    """Overlapping soft-edged ellipsoids, from 0 to 1; shape (1, channels, ...), the same on every rank."""
    generator = torch.Generator().manual_seed(seed)
    channels, *spatial = image
    axes = [
        torch.linspace(-1, 1, n, device=device).reshape([-1] + [1] * (len(spatial) - i - 1))
        for i, n in enumerate(spatial)
    ]
    truth = torch.zeros(image, device=device)
    for _ in range(16):
        centre = (torch.rand(len(spatial), generator=generator) * 1.6 - 0.8).tolist()
        radius = (torch.rand(len(spatial), generator=generator) * 0.4 + 0.1).tolist()
        level = (torch.rand(channels, generator=generator) / 4).tolist()
        distance = sum(((axis - c) / r) ** 2 for axis, c, r in zip(axes, centre, radius, strict=True))
        inside = torch.sigmoid(20 * (1 - distance))
        for channel, amount in enumerate(level):
            truth[channel] += amount * inside
    return truth.clamp_(0, 1)[None]
