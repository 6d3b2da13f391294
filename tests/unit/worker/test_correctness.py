import math
from contextlib import nullcontext

import pytest
import torch
from problems_at import CPU, small

from trisect.errors import TrisectError
from trisect.results.record import Quality
from trisect.worker.correctness import (
    LARGEST_DIFFERENCE_DB,
    alone,
    psnr_db,
    relative_differences,
    require_equal,
    require_same_psnr,
    worst_by_kind,
)
from trisect.worker.solver import build


def test_relative_difference_is_of_the_norm():
    found = relative_differences({"image": torch.tensor([3.0, 4.5])}, {"image": torch.tensor([3.0, 4.0])})
    assert found == {"image": pytest.approx(0.1)}


def test_what_is_missing_or_too_much_is_no_match():
    one = {"gradient of a.0": torch.ones(2)}
    assert relative_differences({}, one) == {"gradient of a.0": math.inf}
    assert relative_differences(one, {}) == {"gradient of a.0": math.inf}
    zero = {"gradient of a.0": torch.zeros(2)}
    assert relative_differences(zero, zero) == {"gradient of a.0": 0}
    assert relative_differences(one, zero) == {"gradient of a.0": math.inf}


def test_rounding_beside_a_large_one_of_its_kind_is_no_difference_but_a_lost_gradient_is():
    expected = {"gradient of step.0": torch.tensor([1e-9]), "gradient of step.1": torch.tensor([1.0])}
    rounded = expected | {"gradient of step.0": torch.tensor([3e-9])}
    assert max(relative_differences(rounded, expected).values()) == pytest.approx(2e-7, rel=0.01)
    lost = {"gradient of step.0": torch.tensor([0.0]), "gradient of step.1": torch.tensor([1.0])}
    assert relative_differences(lost, lost | {"gradient of step.0": torch.tensor([0.02])})["gradient of step.0"] == 1


def test_gradients_are_compared_one_by_one():
    """A tensor that is wrong and small beside the others is seen."""
    expected = {"gradient of head.weight": torch.full((100,), 10.0), "gradient of step.0": torch.tensor([1e-3])}
    wrong = expected | {"gradient of step.0": torch.tensor([2e-3])}
    differences = relative_differences(wrong, expected)
    assert worst_by_kind(differences) == {"gradient": pytest.approx(1)}
    with pytest.raises(TrisectError, match=r"the distributed gradient of step\.0 differs"):
        require_equal(differences, 1e-4)


@pytest.mark.parametrize("difference", [2e-4, math.nan, math.inf])
def test_a_wrong_result_fails_the_run(difference):
    with pytest.raises(TrisectError, match="the distributed image differs from the single-process one"):
        require_equal({"loss": 0.0, "image": difference}, 1e-4)


def test_a_right_result_passes():
    require_equal({"image": 1e-4}, 1e-4)


@pytest.mark.parametrize(("off", "right"), [(0.9, True), (1.1, False), (math.nan, False)])
def test_psnr_of_ranks_and_of_one_process_are_the_same(off, right):
    found = [5.0, 20.0 + off * LARGEST_DIFFERENCE_DB]
    quality = Quality(size="s", psnr_db=found, single_psnr_db=[5.0, 20.0], untiled_psnr_db=None)
    if right:
        require_same_psnr(quality)
    else:
        with pytest.raises(TrisectError, match="PSNR differs from the single-process one by"):
            require_same_psnr(quality)


def test_psnr():
    assert psnr_db(torch.full((4,), 0.1), torch.zeros(4)) == pytest.approx(20)
    assert psnr_db(torch.ones(4), torch.ones(4)) == math.inf


def test_a_dropped_iteration_of_five_is_seen():
    """Backward that stops after the last unrolled iteration: the old check, over all gradients as one, let it pass."""
    run = small("training", unrolled_iterations=5)
    whole = build(run, alone(CPU))
    whole.iterate(lambda _: nullcontext())
    expected = whole.results()
    cut, seen = build(run, alone(CPU)), []
    plain = cut.tiling.forward

    def last_alone(x, *args, **kwargs):
        seen.append(x)
        return plain(x.detach() if len(seen) == 5 else x, *args, **kwargs)

    cut.tiling.forward = last_alone
    cut.iterate(lambda _: nullcontext())
    differences = relative_differences(cut.results(), expected)
    assert differences["image"] < 1e-5
    assert worst_by_kind(differences)["gradient"] > 0.1
