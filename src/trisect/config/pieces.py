"""How much work there is, and how evenly whole pieces of it can be dealt to ranks."""

import math
from collections.abc import Sequence


def tiles_per_image(spatial: Sequence[int], patch: int) -> int:
    """Tiles that cover an image: along each axis, patches of `patch` pixels, the last one moved back to fit.

    Args:
        spatial: pixels along each tiled axis, without channels.
        patch: pixels of a tile along each axis, without its overlap.
    """
    return math.prod(math.ceil(pixels / patch) for pixels in spatial)


def load_balance_bound(pieces: int, ranks: int) -> float:
    """The best load balance when equal pieces are dealt whole.

    The busiest rank holds ceil(pieces / ranks); mean over maximum is pieces / (ranks * ceil(pieces / ranks)).
    8 operators on 16 ranks reach 0.5; 36 tiles on 8 ranks reach 0.9.
    """
    return pieces / (ranks * math.ceil(pieces / ranks))
