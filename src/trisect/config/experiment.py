"""config/experiments/NAME.yaml, key by key."""

import math
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from trisect.config.fields import Closed, Count, Natural, nearest, per_axis

UNTILED = "none"
"""As a patch: the whole image at once."""

PHOTOGRAPH = "photograph"
"""As a ground truth: the photograph that matplotlib ships."""


class Size(Closed):
    """One size of an experiment's problem, and the solver's settings at it."""

    image: list[Count] = Field(min_length=3, max_length=4)
    """Channels, then pixels along each axis (2 or 3 of them)."""
    patch: Annotated[Literal["none"] | Count | list[Count], BeforeValidator(per_axis(1, UNTILED))]
    """Pixels of a tile without the overlap: a number, or one per axis; none: the whole image is one tile."""
    overlap: Annotated[Natural | list[Natural], BeforeValidator(per_axis(0))] = 0
    """Pixels by which a tile reaches into its neighbours on each side: a number, or one per axis."""
    batch: Count | None = None
    """Tiles the denoiser takes at once; null: all that the rank holds."""
    checkpoint: Literal["always", "auto", "never"] = "always"
    """Whether backward computes a batch of tiles again instead of keeping its activations; auto: where a rank has
    several batches. Training only."""
    step: float | None = Field(default=None, gt=0)
    """Step of the gradient; null: the problem's own, else 1 / operators."""
    noise: float = Field(default=0.01, ge=0)
    """Standard deviation of the noise on the measurements; the image ranges from 0 to 1."""
    start: Literal["zeros", "adjoint", "pseudo_inverse"] | None = None
    """Where the first iteration starts: zeros, the adjoint of the measurements times the step, or the mean of the
    operators' pseudo-inverses; null: zeros. Training starts from the adjoint, and takes no other."""
    truth: str | None = None
    """Ground truth: `photograph` for the one that matplotlib ships, or an image file; null: the problem's own, else
    ellipsoids."""
    weights: str | None = None
    """File of denoiser weights (a state_dict of a DRUNet of this size); null: near identity, which take the same
    time."""
    denoiser_channels: list[Count] = Field(min_length=4, max_length=4)
    """DRUNet's channels at its four scales."""
    denoiser_blocks: Count
    """DRUNet's residual blocks per scale."""
    check_at: str | None = None
    """Size at which the result is compared with one process; null: this size."""

    @property
    def pixels(self) -> tuple[int, ...]:
        """Of the image, along each axis."""
        return tuple(self.image[1:])

    @property
    def patches(self) -> tuple[int, ...]:
        """Pixels of a tile along each axis, without the overlap."""
        if self.patch == UNTILED:
            return self.pixels
        return _along(self.patch, self.pixels)

    @property
    def overlaps(self) -> tuple[int, ...]:
        """Pixels of the overlap along each axis; none where the image is one tile."""
        return _along(0 if self.patch == UNTILED else self.overlap, self.pixels)

    @property
    def window(self) -> tuple[int, ...]:
        """Pixels of a tile along each axis, with the overlap on both sides."""
        return tuple(patch + 2 * overlap for patch, overlap in zip(self.patches, self.overlaps, strict=True))

    @property
    def tiles(self) -> int:
        """Tiles that cover the image: along each axis patches, the last one moved back to fit."""
        return math.prod(math.ceil(n / patch) for n, patch in zip(self.pixels, self.patches, strict=True))

    def most_tiles(self, gpus: int) -> int:
        """Tiles of the rank that holds most of them."""
        return math.ceil(self.tiles / gpus)

    def batches(self, tiles: int) -> int:
        """In how many batches a rank denoises so many tiles."""
        return math.ceil(tiles / (self.batch or tiles))

    @property
    def tile_work(self) -> float:
        """Redundant work: the area of all tiles with their overlap over that of the image; 1 where it is one tile."""
        return self.tiles * math.prod(self.window) / math.prod(self.pixels)

    @model_validator(mode="after")
    def _tile_fits(self) -> Self:
        for name in ("patch", "overlap"):
            value = getattr(self, name)
            if isinstance(value, list) and len(value) != len(self.pixels):
                raise ValueError(f"{name} {value} has {len(value)} axes, the image has {len(self.pixels)}")
        for n, patch, overlap in zip(self.pixels, self.patches, self.overlaps, strict=True):
            if self.patch != UNTILED and patch >= n:
                raise ValueError(
                    f"patch {patch} must be smaller than the image, whose axis has {n}; or write patch: none"
                )
            if overlap >= n:
                raise ValueError(f"overlap {overlap} must be smaller than the image's axis, {n}")
        if len(self.pixels) == 3 and min(self.window) >= 64 and any(n % 8 for n in self.window):
            shown = " x ".join(map(str, self.window))
            raise ValueError(f"patch: DRUNet takes no 3D tile of {shown}; make patch + 2 overlap multiples of 8")
        return self


def _along(value: object, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, list) else (int(str(value)),) * len(axes)


class Experiment(Closed):
    """config/experiments/NAME.yaml: one result set."""

    problem: str
    """A function of trisect.worker.problems."""
    parameters: dict[str, Any] = {}
    """What that function is called with, besides the image's shape and the number of operators."""
    mode: Literal["inference", "training"]
    """inference: sections gradient and denoiser; training: sections forward and backward."""
    operators: Count
    """Acquisition operators; each is held whole by one rank."""
    unrolled_iterations: Count = 1
    """Solver iterations in one training step; training only."""
    denoiser_sigma: float = Field(default=0.05, gt=0)
    """Noise level the denoiser is told."""
    relaxation: float | None = Field(default=None, gt=0)
    """lambda: the denoised image's share in the next iterate is step lambda / (1 + step lambda); null: all of it.
    Inference only."""
    tolerance: float = Field(default=1e-4, gt=0)
    """Largest relative difference from the single-process result."""
    sizes: dict[str, Size]
    """The published size, and smaller ones of the same thing."""

    @property
    def sections(self) -> list[str]:
        """Sections of one iteration, in order."""
        return ["gradient", "denoiser"] if self.mode == "inference" else ["forward", "backward"]

    @property
    def training(self) -> bool:
        """Whether it is backpropagated through."""
        return self.mode == "training"

    def measured_sizes(self, size: str) -> list[str]:
        """Names of the sizes that a run at `size` builds: that one, and the one it is checked at."""
        return list(dict.fromkeys([size, self.sizes[size].check_at or size]))

    def inputs(self, size: str) -> list[str]:
        """The files that a run at `size` reads: denoiser weights and ground truth, where the sizes name some."""
        used = [self.sizes[name] for name in self.measured_sizes(size)]
        files = [name for one in used for name in (one.weights, one.truth) if name not in (None, PHOTOGRAPH)]
        return list(dict.fromkeys(files))

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.mode == "inference" and self.unrolled_iterations != 1:
            raise ValueError("unrolled_iterations is for mode training; remove it here")
        if self.training and self.relaxation is not None:
            raise ValueError("relaxation is for mode inference; remove it here")
        for name, size in self.sizes.items():
            if size.check_at is not None and size.check_at not in self.sizes:
                raise ValueError(
                    f"sizes.{name}.check_at: no size {size.check_at!r}{nearest(size.check_at, self.sizes)}"
                )
            if self.training and size.start not in (None, "adjoint"):
                raise ValueError(f"sizes.{name}.start: training starts from the adjoint; remove it here")
        return self
