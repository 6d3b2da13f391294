"""What a rank holds in memory, counted from an experiment's file: docs/memory.md derives each term.

All values are float32. Terms that grow with the image are counted in images, those of a batch of tiles in feature maps.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from itertools import pairwise

from trisect.config.experiment import Experiment, Size
from trisect.errors import TrisectError
from trisect.wording import gib

_VALUE_BYTES = 4

CONTEXT_BYTES = 1_500_000_000
"""Of each GPU's memory, for CUDA's context, NCCL's buffers and what torch's allocator cannot fill. Assumed."""

_BLOCK = 16
"""Channels by which a convolution copies its input: oneDNN's blocks. Fewer channels take as much."""

MOST_GPUS = 1024
"""Up to which count a problem is tried to fit."""


@dataclass(frozen=True)
class Operators:
    """What a problem's operators hold, in images."""

    measurement: float  # one measurement
    blurs: bool  # its result is a view of a whole image, and its convolution makes copies


@dataclass(frozen=True)
class Memory:
    """Bytes that a rank needs at once, by what holds them."""

    images: int
    """Ground truth, iterate, and the images that a step makes of them; in training those that backward needs."""
    operators: int
    """Measurements of the operators that the rank holds, and what it computes from them."""
    weights: int
    """Of the denoiser; in training with their gradients."""
    tiles: int
    """The rank's tiles with their overlap: taken out of the image, denoised, and put together."""
    activations: int
    """Feature maps of a batch of tiles; of all batches where backward keeps them."""

    @property
    def total_bytes(self) -> int:
        """Of all."""
        return sum(getattr(self, one.name) for one in fields(self))


def rank_memory(experiment: Experiment, size: str, gpus: int) -> Memory:
    """What rank 0, which holds as much as any, needs of one device: the largest of its moments.

    Moments are the gradient step and the denoising step; in training the whole of backward, and the last gradient step
    of forward.
    """
    count = _Count(experiment, experiment.sizes[size], gpus)
    moments = count.training() if experiment.training else count.inference()
    return max(moments, key=lambda one: one.total_bytes)


def least_gpus(experiment: Experiment, size: str, gpu_memory_gb: float | None) -> int | None:
    """The fewest GPUs of so many GiB that hold the problem; None where more GPUs do not help. 1 where None is known."""
    if gpu_memory_gb is None:
        return 1
    fits = (n for n in range(1, MOST_GPUS + 1) if required_bytes(experiment, size, n) <= gpu_memory_gb * 2**30)
    return next(fits, None)


def require_fit(name: str, experiment: Experiment, size: str, gpu_memory_gb: float | None) -> int:
    """The same, of an experiment that must fit.

    Raises:
        TrisectError: more GPUs do not help.
    """
    least = least_gpus(experiment, size, gpu_memory_gb)
    if least is None:
        held = rank_memory(experiment, size, MOST_GPUS)
        raise TrisectError(
            f"config/experiments/{name}.yaml: sizes.{size}: a rank needs {gib(held.total_bytes)} GiB at any count,"
            f" {gib(held.activations)} of them for a batch of tiles; the machine's GPUs have {gpu_memory_gb:g}: lower"
            " batch or patch"
        )
    return least


def required_bytes(experiment: Experiment, size: str, gpus: int) -> int:
    """Of a GPU's memory: what a rank holds, and CONTEXT_BYTES."""
    return rank_memory(experiment, size, gpus).total_bytes + CONTEXT_BYTES


def operators_of(experiment: Experiment) -> Operators:
    """Of the problems in trisect.worker.problems; of any other one, measurements as large as the image are assumed."""
    if experiment.problem == "super_resolution":
        return Operators(1 / int(experiment.parameters.get("factor", 2)) ** 2, blurs=True)
    return Operators(1, blurs=experiment.problem != "denoising")


def parameters(size: Size) -> int:
    """Values in the weights of the size's DRUNet: none of its layers has a bias."""
    axes, channels, widths, blocks = len(size.pixels), size.image[0], size.denoiser_channels, size.denoiser_blocks
    ends = 3**axes * widths[0] * (channels + 1 + channels)
    residual = 3**axes * 2 * blocks * (2 * sum(width**2 for width in widths[:3]) + widths[3] ** 2)
    between = 2 * 2**axes * sum(a * b for a, b in pairwise(widths))
    return ends + residual + between


class _Count:
    """One size at one count, in bytes."""

    def __init__(self, experiment: Experiment, size: Size, gpus: int) -> None:
        axes, channels = len(size.pixels), size.image[0]
        self.operators, self.unrolled = operators_of(experiment), experiment.unrolled_iterations
        self.image = _VALUE_BYTES * math.prod(size.image)
        padded = (n + 2 * overlap for n, overlap in zip(size.pixels, size.overlaps, strict=True))
        self.padded = _VALUE_BYTES * channels * math.prod(padded)
        self.held_operators = math.ceil(experiment.operators / gpus)
        self.measured = self.held_operators * self.operators.measurement * self.image
        self.weights = _VALUE_BYTES * parameters(size)
        held = size.most_tiles(gpus)
        batch, self.batches = min(size.batch or held, held), size.batches(held)
        tile = _VALUE_BYTES * channels * math.prod(size.window)
        self.tiles, self.batch = held * tile, batch * tile
        self.keeps = size.checkpoint == "never" or (size.checkpoint == "auto" and self.batches == 1)
        self.channels, self.blocks = channels, size.denoiser_blocks
        self.plane = _VALUE_BYTES * batch * math.prod(padded_window(size))
        first = size.denoiser_channels[0]
        self.copy = math.ceil(first / _BLOCK) * _BLOCK * self.plane  # of a convolution's input at the first scale
        self.maps = [width * self.plane / 2 ** (scale * axes) for scale, width in enumerate(size.denoiser_channels)]

    def inference(self) -> Iterable[Memory]:
        """The gradient step; the denoising step in its last batch, and when all tiles are put together."""
        yield self._gradient()
        held = 2 * self.image + self.padded
        yield self._memory(held, self.measured, 2 * self.tiles - self.batch, self._forward_maps())
        copies = 3 if self.batches > 1 else 2
        yield self._memory(held + self.image, self.measured, copies * self.tiles, 0)

    def training(self) -> Iterable[Memory]:
        """Backward, and the last gradient step of forward; both with what backward needs of the iterations before."""
        before = self.unrolled - 1
        images = before * (self.padded + self.image)
        operators = before * (2 * self.held_operators + 1) * self.image if self.operators.blurs else 0
        tiles, kept = before * self.tiles, self.batches * self._saved_maps() if self.keeps else 0
        yield self._memory(
            images + 2 * self.padded + (7 if before else 6) * self.image,
            operators + self.measured,
            tiles + 3 * self.tiles,
            (self.unrolled * kept or self._saved_maps()) + max(3 * self.maps[0], 2 * self.copy) + 2 * self.plane,
            weights=2 * self.weights,
        )
        step = self._gradient()
        yield self._memory(images + 3 * self.image + step.images, operators + step.operators, tiles, before * kept)

    def _gradient(self) -> Memory:
        """Truth, iterate and sum; by operator its measurement, A x, the gradient, and a copy of it in a stack.

        Or, before they are stacked, what the last operator makes on its way: seven images where it blurs.
        """
        seen = 1.0 if self.operators.blurs else self.operators.measurement
        stacked = self.held_operators * (seen + 2)
        last = self.held_operators * (seen + 1) - 2 + (7 if self.operators.blurs else 0)
        return self._memory(3 * self.image, self.measured + max(stacked, last) * self.image, 0, 0)

    def _forward_maps(self) -> float:
        """Without gradients, in the last residual block: its input, two maps, and a convolution's copy of its input.

        And the outputs of all scales, which DRUNet keeps to the end.
        """
        first, second, third, fourth = self.maps
        return (self.channels + 2) * self.plane + 4 * first + self.copy + 3 * second + third + fourth

    def _saved_maps(self) -> float:
        """What backward needs of one batch: two maps a residual block, and the input of every other layer."""
        first, second, third, fourth = self.maps
        blocks = 4 * self.blocks * (first + second + third) + 2 * self.blocks * fourth
        return blocks + 2 * (first + second + third) + fourth + (self.channels + 1) * self.plane

    def _memory(
        self, images: float, operators: float, tiles: float, maps: float, weights: float | None = None
    ) -> Memory:
        held = (images, operators, self.weights if weights is None else weights, tiles, maps)
        return Memory(*(round(one) for one in held))


def padded_window(size: Size) -> tuple[int, ...]:
    """Pixels of a tile as DRUNet computes it: multiples of 8 from 32 on as they are, others padded to 16."""
    if all(n % 8 == 0 and n > 31 for n in size.window):
        return size.window
    return tuple(math.ceil(n / 16) * 16 for n in size.window)
