"""Train the small DRUNet with which the laptop experiments reconstruct a real image: `make weights`, some minutes.

It learns from photographs that the package scikit-image ships; the image that is reconstructed is none of them. Noise
levels reach from 0.004 to 0.2 of the image's range, and the network is told the level. It starts as nearly the
identity, which is what it must be at the lowest levels.
"""

import argparse
import io
import math
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from deepinv.models import DRUNet
from PIL import Image

from trisect.host import write_whole
from trisect.worker.drunet import near_identity

PHOTOGRAPHS = (
    *("astronaut.png", "chelsea.png", "coffee.png", "hubble_deep_field.jpg", "ihc.png"),
    *("motorcycle_left.png", "motorcycle_right.png", "retina.jpg", "rocket.jpg"),
)
CROP, BATCH = 48, 8
SIGMA = 0.004, 0.2
LEARNING_RATE = 5e-4


def photographs() -> list[torch.Tensor]:
    """The photographs at full and at half size, each of shape (3, rows, columns), from 0 to 1."""
    spec = find_spec("skimage")
    if spec is None or spec.origin is None:
        raise SystemExit("scikit-image is not installed: pip install 'trisect[weights]'")
    images = []
    for name in PHOTOGRAPHS:
        with Image.open(Path(spec.origin).parent / "data" / name) as opened:
            whole = opened.convert("RGB")
            for scale in (1, 2):
                resized = whole.resize((whole.width // scale, whole.height // scale), Image.Resampling.LANCZOS)
                values = np.asarray(resized, dtype=np.float32) / 255
                images.append(torch.from_numpy(values).permute(2, 0, 1).contiguous())
    return images


def crops(images: list[torch.Tensor], generator: torch.Generator) -> torch.Tensor:
    """A batch of random, randomly flipped parts of random images: shape (BATCH, 3, CROP, CROP)."""
    parts = []
    for _ in range(BATCH):
        image = images[_below(len(images), generator)]
        row, column = (_below(n - CROP + 1, generator) for n in image.shape[1:])
        part = image[:, row : row + CROP, column : column + CROP]
        flipped = [axis for axis in (1, 2) if _below(2, generator)]
        parts.append(part.flip(flipped) if flipped else part)
    return torch.stack(parts)


def _below(n: int, generator: torch.Generator) -> int:
    return int(torch.randint(n, (1,), generator=generator))


def train(network: DRUNet, steps: int, seed: int) -> None:
    """Minimise the mean square error over noise levels, each weighted so that the lowest ones count as well."""
    generator = torch.Generator().manual_seed(seed)
    images, (lowest, highest) = photographs(), SIGMA
    optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=steps, pct_start=0.05)
    for step in range(steps):
        clean = crops(images, generator)
        level = torch.rand(BATCH, 1, 1, 1, generator=generator)
        sigma = lowest * (highest / lowest) ** level
        noisy = clean + sigma * torch.randn(clean.shape, generator=generator)
        error = (network(noisy, sigma.flatten()) - clean).square().mean(dim=(1, 2, 3), keepdim=True)
        loss = (error.sqrt() / sigma).mean()  # 1 where nothing is denoised
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 200 == 0 or step == steps - 1:
            print(
                f"step {step} of {steps}: noise left {-20 * math.log10(loss.item()):.2f} dB below the input's",
                flush=True,
            )


def main() -> None:
    """Train, and write the weights as float16, whole or not at all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("config/weights/drunet_2d.pt"))
    parser.add_argument("--channels", type=int, nargs=4, default=[32, 48, 64, 64], help="at DRUNet's four scales")
    parser.add_argument("--blocks", type=int, default=1, help="residual blocks per scale")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    torch.manual_seed(asked.seed)
    network = DRUNet(3, 3, nc=tuple(asked.channels), nb=asked.blocks, pretrained=None, dim=2)
    near_identity(network)
    train(network, asked.steps, asked.seed)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    weights = io.BytesIO()
    torch.save({name: value.half() for name, value in network.state_dict().items()}, weights)
    write_whole(asked.out, weights.getvalue())


if __name__ == "__main__":
    main()
