import pytest

from trisect.config.pieces import load_balance_bound, tiles_per_image


@pytest.mark.parametrize(
    ("spatial", "patch", "tiles"),
    [((8192, 8192), 512, 256), ((192, 192), 32, 36), ((48, 48, 48), 16, 27), ((100, 50), 32, 4 * 2)],
)
def test_tiles(spatial: tuple[int, ...], patch: int, tiles: int) -> None:
    assert tiles_per_image(spatial, patch) == tiles


@pytest.mark.parametrize(
    ("pieces", "ranks", "bound"),
    [(8, 16, 0.5), (36, 8, 0.9), (8, 8, 1.0), (2, 64, 1 / 32), (27, 2, 27 / 28)],
)
def test_bound(pieces: int, ranks: int, bound: float) -> None:
    assert load_balance_bound(pieces, ranks) == pytest.approx(bound)
