"""What is reconstructed: a ground truth, and its noisy measurements."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from deepinv.distributed import DistributedContext
from PIL import Image, ImageOps, UnidentifiedImageError

from trisect.config.experiment import PHOTOGRAPH, Size
from trisect.config.plan import Run
from trisect.errors import TrisectError
from trisect.worker.problems import Acquisition, acquisition


@dataclass(frozen=True)
class Scene:
    """A ground truth of shape (1, channels, ...), and one measurement per operator."""

    acquisition: Acquisition
    truth: torch.Tensor
    measurements: list[torch.Tensor]  # empty where another rank holds the operator
    sha256: str  # of the truth and of all measurements


def acquire(run: Run, ctx: DistributedContext) -> Scene:
    """Ground truth and noisy measurements. Rank 0 makes the measurements and broadcasts them, so that all agree.

    A rank keeps the measurements of the operators that it holds.

    Raises:
        TrisectError: no such problem, or a ground truth that is no image of this shape.
    """
    size, operators = run.problem_size, run.experiment.operators
    made = acquisition(run.experiment, size.image, ctx.device)
    truth = _truth(size, made, run.seed, ctx.device)
    digest = hashlib.sha256(_bytes(truth))
    generator = torch.Generator().manual_seed(run.seed + 1)
    mine, measurements = set(ctx.local_indices(operators)), []
    for k in range(operators):
        clean = _measured(made, k, truth, run.experiment.problem)
        noisy = ctx.broadcast(made.noise(clean, size.noise, generator).contiguous(), src=0)
        digest.update(_bytes(noisy))
        measurements.append(noisy if k in mine else noisy.new_empty(0))
    return Scene(made, truth, measurements, digest.hexdigest())


def _measured(made: Acquisition, k: int, truth: torch.Tensor, problem: str) -> torch.Tensor:
    operator = made.operator(k)
    try:
        return operator.A(truth)
    except (TypeError, ValueError, RuntimeError) as error:
        shape, reason = list(truth.shape[1:]), " ".join(str(error).split())[:300]
        raise TrisectError(f"problem: operator {k} of {problem} takes no image of {shape}: {reason}") from error


def _bytes(values: torch.Tensor) -> bytes:
    """Shape and values."""
    return str(tuple(values.shape)).encode() + values.contiguous().cpu().numpy().tobytes()


def _truth(size: Size, made: Acquisition, seed: int, device: torch.device) -> torch.Tensor:
    if size.truth is not None:
        return photograph(size.truth, size.image).to(device)
    if made.truth is None:
        return ellipsoids(size.image, seed, device)
    if list(made.truth.shape[1:]) != size.image:
        raise TrisectError(f"problem: its truth has shape {list(made.truth.shape[1:])}, the size's image {size.image}")
    return made.truth.to(device)


def photograph(name: str, image: Sequence[int]) -> torch.Tensor:
    """An image file, or the photograph that matplotlib ships: its middle, scaled; shape (1, channels, ...), 0 to 1.

    Raises:
        TrisectError: the file is no image, or the size is not one of a grey or coloured image.
    """
    path = Path(name) if name != PHOTOGRAPH else _shipped()
    modes = {1: "L", 3: "RGB"}
    if len(image) != 3 or image[0] not in modes:
        raise TrisectError(f"truth: {name} is an image of 1 or 3 channels and 2 axes, the size's has {list(image)}")
    try:
        with Image.open(path) as opened:
            fitted = ImageOps.fit(opened.convert(modes[image[0]]), (image[2], image[1]), Image.Resampling.LANCZOS)
    except (OSError, UnidentifiedImageError) as error:
        raise TrisectError(f"truth: {path} is not readable as an image: {error}") from error
    values = np.asarray(fitted, dtype=np.float32).reshape(image[1], image[2], image[0]) / 255
    return torch.from_numpy(values).permute(2, 0, 1)[None].contiguous()


def _shipped() -> Path:
    """Grace Hopper's portrait by the US Navy, in the public domain; found without importing matplotlib."""
    spec = find_spec("matplotlib")
    if spec is None or spec.origin is None:
        raise TrisectError(f"truth: {PHOTOGRAPH} is a file of matplotlib, which is not installed; name a file instead")
    return Path(spec.origin).parent / "mpl-data" / "sample_data" / "grace_hopper.jpg"


def ellipsoids(image: Sequence[int], seed: int, device: torch.device) -> torch.Tensor:
    """Overlapping soft-edged ellipsoids, from 0 to 1; shape (1, channels, ...), the same on every rank."""
    generator = torch.Generator().manual_seed(seed)
    channels, *spatial = image
    axes = [
        torch.linspace(-1, 1, n, device=device).reshape([-1] + [1] * (len(spatial) - i - 1))
        for i, n in enumerate(spatial)
    ]
    truth = torch.zeros(tuple(image), device=device)
    for _ in range(16):
        centre = (torch.rand(len(spatial), generator=generator) * 1.6 - 0.8).tolist()
        radius = (torch.rand(len(spatial), generator=generator) * 0.4 + 0.1).tolist()
        level = (torch.rand(channels, generator=generator) / 4).tolist()
        distance = sum(((axis - c) / r) ** 2 for axis, c, r in zip(axes, centre, radius, strict=True))
        inside = torch.sigmoid(20 * (1 - distance))
        for channel, amount in enumerate(level):
            truth[channel] += amount * inside
    return truth.clamp_(0, 1)[None]
