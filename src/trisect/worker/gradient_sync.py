"""A mistake of deepinv 0.5 in training, repaired: gradients are all_reduced out of place."""

from typing import Any

import torch
from deepinv.distributed.framework.distributed_utils import DistributedGradientSync

_in_place = DistributedGradientSync.backward


def repair_gradient_sync() -> None:
    """Let deepinv sum a copy of the gradient of an image over ranks.

    deepinv 0.5 sums it in place, in a buffer that autograd may also hand to `x - step * gradient`: with one operator a
    rank, or operators that return their input, the gradients of all unrolled iterations but the last are then wrong.
    """
    DistributedGradientSync.backward = staticmethod(_out_of_place)


def _out_of_place(context: Any, gradient: torch.Tensor | None) -> Any:
    return _in_place(context, None if gradient is None else gradient.clone())
