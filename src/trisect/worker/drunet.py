"""The experiment's DRUNet and its weights: from a file, or near identity."""

import hashlib
from pathlib import Path

import torch
from deepinv.models import DRUNet

from trisect.config.plan import Run
from trisect.errors import TrisectError

_SHARE = 0.02
"""Of what a random DRUNet adds to the identity, in `near_identity`."""


def denoiser(run: Run) -> DRUNet:
    """The DRUNet of a run's size: weights from the given file, else near identity from the seed, equal on every rank.

    Raises:
        TrisectError: the file does not hold weights of a DRUNet of this size.
    """
    size = run.problem_size
    channels = size.image[0]
    torch.manual_seed(run.seed)
    widths, axes = tuple(size.denoiser_channels), len(size.pixels)
    network = DRUNet(channels, channels, nc=widths, nb=size.denoiser_blocks, pretrained=None, dim=axes)
    if size.weights is None:
        near_identity(network)
    else:
        _load(network, Path(size.weights), run.size)
    return network


def weights_sha256(network: torch.nn.Module) -> str:
    """One hash over all parameters and buffers, in order."""
    digest = hashlib.sha256()
    for name, value in network.state_dict().items():
        digest.update(name.encode() + value.contiguous().cpu().numpy().tobytes())
    return digest.hexdigest()


def near_identity(network: DRUNet) -> None:
    """Make a random network the identity plus something small, in place; gradients still reach all weights.

    DRUNet returns tail(up(...) + head(x)). The head passes the image's channels on as its first features, the tail
    takes them out again, and the transposed convolution that feeds the last scale is scaled down: blocks without bias
    scale their outputs with their inputs.
    """
    head, tail, last = network.m_head.weight, network.m_tail.weight, network.m_up1[0].weight
    passed, centre = min(tail.shape[0], head.shape[0]), (1,) * network.dim
    with torch.no_grad():
        last.mul_(_SHARE)
        tail.mul_(_SHARE)
        for channel in range(passed):
            head[channel] = 0
            head[(channel, channel, *centre)] = 1
            tail[channel, channel] = 0
            tail[(channel, channel, *centre)] = 1


def _load(network: DRUNet, weights: Path, size: str) -> None:
    try:
        network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    except Exception as error:  # torch.load raises what the bytes happen to provoke
        reason = " ".join(str(error).split())[:300]
        raise TrisectError(f"weights: {weights} does not hold this DRUNet at size {size}: {reason}") from error
