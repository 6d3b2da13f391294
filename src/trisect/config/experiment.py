"""config/experiments/NAME.yaml, key by key."""

import math
from typing import Literal, Self

from pydantic import Field, model_validator

from trisect.config.fields import Closed, Count, Natural, nearest


class Size(Closed):
    """One size of an experiment's problem."""

    image: list[Count] = Field(min_length=3, max_length=4)
    """Channels, then pixels along each axis (2 or 3 of them)."""
    patch: Count
    """Pixels of a tile along each axis, without the overlap."""
    overlap: Natural
    """Pixels by which a tile reaches into its neighbours on each side."""
    tiles_per_batch: Count | None = None
    """Tiles the denoiser takes at once; null: all that the rank holds."""
    denoiser_channels: list[Count] = Field(min_length=4, max_length=4)
    """DRUNet's channels at its four scales."""
    denoiser_blocks: Count
    """DRUNet's residual blocks per scale."""
    min_gpus: Count = 1
    """Fewest GPUs that the problem fits on; smaller counts of the sweep are left out for it."""
    check_at: str | None = None
    """Size at which the result is compared with one process; null: this size."""

    @property
    def tiles(self) -> int:
        """Tiles that cover the image: along each axis patches, the last one moved back to fit."""
        return math.prod(math.ceil(pixels / self.patch) for pixels in self.image[1:])

    @model_validator(mode="after")
    def _tile_fits(self) -> Self:
        smallest = min(self.image[1:])
        if self.patch >= smallest:
            raise ValueError(f"patch {self.patch} must be smaller than the image, whose smallest axis has {smallest}")
        if self.overlap >= smallest:
            raise ValueError(f"overlap {self.overlap} must be smaller than the image's smallest axis, {smallest}")
        return self


class Experiment(Closed):
    """config/experiments/NAME.yaml: one result set."""

    problem: str
    """A name registered in trisect.worker.problems."""
    mode: Literal["inference", "training"]
    """inference: sections gradient and denoiser; training: sections forward and backward."""
    operators: Count
    """Acquisition operators; each is held whole by one rank."""
    unrolled_iterations: Count = 1
    """Solver iterations in one training step; training only."""
    noise_sigma: float = Field(default=0.01, ge=0)
    """Standard deviation of the noise on the measurements; the image ranges from 0 to 1."""
    denoiser_sigma: float = Field(default=0.05, gt=0)
    """Noise level the denoiser is told."""
    weights: str | None = None
    """File of denoiser weights (a state_dict of a DRUNet of this size); null: random, which take the same time."""
    tolerance: float = Field(default=1e-4, gt=0)
    """Largest relative difference from the single-process result."""
    sizes: dict[str, Size]
    """The published size, and smaller ones of the same thing."""

    @property
    def sections(self) -> list[str]:
        """Sections of one iteration, in order."""
        return ["gradient", "denoiser"] if self.mode == "inference" else ["forward", "backward"]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.mode == "inference" and self.unrolled_iterations != 1:
            raise ValueError("unrolled_iterations is for mode training; remove it here")
        for name, size in self.sizes.items():
            if size.check_at is not None and size.check_at not in self.sizes:
                raise ValueError(
                    f"sizes.{name}.check_at: no size {size.check_at!r}{nearest(size.check_at, self.sizes)}"
                )
        return self
