"""The denoiser over the tiles of a size, dealt to ranks by deepinv; or over the whole image."""

from collections.abc import Sequence

import torch
from deepinv.distributed import DistributedContext, distribute
from deepinv.distributed.framework import DistributedProcessing
from deepinv.distributed.strategies import DistributedSignalStrategy
from deepinv.models import DRUNet

from trisect.config.experiment import UNTILED, Size


class WholeImage(DistributedSignalStrategy):
    """The image as one tile, which deepinv's own tiling refuses."""

    def get_local_patches(self, x: torch.Tensor, local_indices: list[int]) -> list[tuple[int, torch.Tensor]]:
        """The image, for the one rank that holds it."""
        return [(index, x) for index in local_indices]

    def reduce_patches(self, out_tensor: torch.Tensor, local_pairs: list[tuple[int, torch.Tensor]]) -> None:
        """Put it back whole."""
        for _, tile in local_pairs:
            out_tensor.copy_(tile)

    def get_num_patches(self) -> int:
        """One."""
        return 1


def tiling(network: DRUNet, size: Size, ctx: DistributedContext) -> DistributedProcessing:
    """The network applied to each tile that this rank holds, in batches, and all tiles put together."""
    batches = {"max_batch_size": size.batch, "checkpoint_batches": size.checkpoint}
    if size.patch == UNTILED:
        return distribute(network, ctx, tiling_strategy=WholeImage((1, *size.image)), **batches)
    axes = tuple(range(2, len(size.image) + 1))
    return distribute(network, ctx, patch_size=size.patches, overlap=size.overlaps, tiling_dims=axes, **batches)


def effective_patch(tiles: DistributedProcessing, size: Size) -> Sequence[int]:
    """Pixels of a tile along each axis as deepinv laid it out, which shrinks patches with only a warning."""
    laid_out = getattr(tiles._strategy, "patch_size", size.pixels)  # the only place where deepinv keeps it
    return list(laid_out)
