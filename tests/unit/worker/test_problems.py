"""The problems are what they say: linear operators with their adjoints, distinct, on a ground truth all ranks share."""

import pytest
import torch

from trisect.errors import TrisectError
from trisect.worker.problems import gaussian_kernel, ground_truth, operator_factory

CPU = torch.device("cpu")
IMAGES = {"super_resolution_2d": [3, 16, 20], "deconvolution_2d": [1, 16, 12], "deconvolution_3d": [1, 8, 10, 12]}


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("k", [0, 3])
def test_adjoint_and_norm(name: str, k: int) -> None:
    torch.manual_seed(k)
    operator = operator_factory(name, IMAGES[name])(k, CPU, None)
    x = torch.rand(1, *IMAGES[name], dtype=torch.float64)
    operator = operator.to(torch.float64)
    y = torch.rand_like(operator.A(x))
    assert float((operator.A(x) * y).sum()) == pytest.approx(float((x * operator.A_adjoint(y)).sum()), rel=1e-9)
    assert float(operator.A(x).norm()) <= float(x.norm()) * (1 + 1e-12)


@pytest.mark.parametrize("name", IMAGES)
def test_operators_are_distinct(name: str) -> None:
    x = ground_truth(IMAGES[name], 0, CPU)
    outputs = [operator_factory(name, IMAGES[name])(k, CPU, None).A(x) for k in range(8)]
    for i, first in enumerate(outputs):
        assert all(not torch.allclose(first, other, atol=1e-4) for other in outputs[i + 1 :])


def test_kernel_has_unit_sum_and_the_stated_centre() -> None:
    kernel = gaussian_kernel(0.8, (0.25, -0.5), CPU, radius=6)
    position = torch.arange(-6.0, 7.0)
    assert float(kernel.sum()) == pytest.approx(1)
    assert float((kernel[0, 0].sum(1) * position).sum()) == pytest.approx(0.25, abs=1e-4)
    assert float((kernel[0, 0].sum(0) * position).sum()) == pytest.approx(-0.5, abs=1e-4)


def test_ground_truth_depends_on_the_seed_alone() -> None:
    first = ground_truth([2, 24, 24], 7, CPU)
    torch.manual_seed(99)
    assert torch.equal(first, ground_truth([2, 24, 24], 7, CPU))
    assert not torch.equal(first, ground_truth([2, 24, 24], 8, CPU))
    assert 0 <= float(first.min()) < float(first.max()) <= 1


def test_unknown_problem_names_those_there_are() -> None:
    with pytest.raises(TrisectError, match=r"problem: no 'tomography'.*deconvolution_3d"):
        operator_factory("tomography", [1, 8, 8])
