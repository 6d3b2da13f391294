import pytest

from trisect.config.experiment import Size
from trisect.config.plan import load_balance_bound


@pytest.mark.parametrize(
    ("spatial", "patch", "tiles"),
    [((8192, 8192), 512, 256), ((192, 192), 32, 36), ((48, 48, 48), 16, 27), ((100, 50), 32, 4 * 2)],
)
def test_tiles(spatial: tuple[int, ...], patch: int, tiles: int) -> None:
    size = Size(image=[1, *spatial], patch=patch, overlap=0, denoiser_channels=[1, 1, 1, 1], denoiser_blocks=1)
    assert size.tiles == tiles


@pytest.mark.parametrize(
    ("pieces", "ranks", "bound"),
    [(8, 16, 0.5), (36, 8, 0.9), (8, 8, 1.0), (2, 64, 1 / 32), (27, 2, 27 / 28)],
)
def test_bound(pieces: int, ranks: int, bound: float) -> None:
    assert load_balance_bound(pieces, ranks) == pytest.approx(bound)
