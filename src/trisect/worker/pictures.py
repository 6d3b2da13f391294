"""Truth, one measurement and result of a reconstruction, as pictures for the report."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trisect.host import write_whole

MOST_PIXELS = 512
"""Pixels along an axis of a picture: of larger ones the middle is kept."""


def write_pictures(pictures: Mapping[str, torch.Tensor], path: Path) -> None:
    """Write the pictures, whole or not at all; where there are none, a file of an earlier run goes.

    Each is an array of bytes, shape (rows, columns) or (rows, columns, 3): the middle of the image, and of a volume its
    middle slice.
    """
    path.unlink(missing_ok=True)
    if not pictures:
        return
    archive = io.BytesIO()
    shown: dict[str, Any] = {name: _picture(image) for name, image in pictures.items()}
    np.savez_compressed(archive, **shown)
    write_whole(path, archive.getvalue())


def _picture(image: torch.Tensor) -> np.ndarray:
    """The middle of an image of shape (1, channels, ...), as bytes; channels that are no colours as the first one."""
    values = image[0].detach().float().cpu()
    if values.ndim == 4:
        values = values[:, values.shape[1] // 2]
    if len(values) != 3:
        values = values[:1]
    rows, columns = (_middle(n) for n in values.shape[1:])
    shown = (values[:, rows, columns].clamp(0, 1) * 255).round().to(torch.uint8)
    return shown.permute(1, 2, 0).squeeze(-1).numpy()


def _middle(pixels: int) -> slice:
    start = max(0, (pixels - MOST_PIXELS) // 2)
    return slice(start, min(pixels, start + MOST_PIXELS))
