import math

import pytest
import torch

from trisect.errors import TrisectError
from trisect.worker.correctness import measurements_sha256, psnr_db, relative_differences, require_equal


def test_relative_difference_is_of_the_norm() -> None:
    found = relative_differences({"image": torch.tensor([3.0, 4.5])}, {"image": torch.tensor([3.0, 4.0])})
    assert found == {"image": pytest.approx(0.1)}


@pytest.mark.parametrize("difference", [2e-4, math.nan, math.inf])
def test_a_wrong_result_fails_the_run(difference: float) -> None:
    with pytest.raises(TrisectError, match="the distributed image differs from the single-process one"):
        require_equal({"loss": 0.0, "image": difference}, 1e-4)


def test_a_right_result_passes() -> None:
    require_equal({"image": 1e-4}, 1e-4)


def test_hash_sees_values_and_shapes() -> None:
    zeros = measurements_sha256([torch.zeros(4)])
    assert zeros == measurements_sha256([torch.zeros(4)])
    assert zeros != measurements_sha256([torch.zeros(2, 2)])
    assert zeros != measurements_sha256([torch.tensor([0, 0, 0, 1e-7])])


def test_psnr() -> None:
    assert psnr_db(torch.full((4,), 0.1), torch.zeros(4)) == pytest.approx(20)
