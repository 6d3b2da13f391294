import pytest
import torch

from trisect.errors import TrisectError
from trisect.worker import device

CUDA_13 = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120", "compute_120"]
CUDA_12_8 = ["sm_70", "sm_75", "sm_80", "sm_86", "sm_90"]


@pytest.mark.parametrize(
    ("capability", "architectures"),
    [
        ((7, 0), CUDA_12_8),
        ((8, 0), CUDA_13),
        ((8, 9), CUDA_12_8),
        ((12, 1), CUDA_13),
        ((13, 0), CUDA_13),
        ((9, 0), ["sm_90a"]),
    ],
)
def test_code_that_runs(capability: tuple[int, int], architectures: list[str]) -> None:
    device.require_code(capability, architectures, "a GPU")


@pytest.mark.parametrize(
    ("capability", "architectures"), [((7, 0), CUDA_13), ((10, 0), CUDA_12_8), ((8, 0), ["sm_86"]), ((8, 0), [])]
)
def test_code_that_does_not(capability: tuple[int, int], architectures: list[str]) -> None:
    with pytest.raises(TrisectError, match=r"has no code for Tesla V100 \(sm_\d+\).*install a build"):
        device.require_code(capability, architectures, "Tesla V100")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_cuda_where_there_is_none() -> None:
    with pytest.raises(TrisectError, match="sees no CUDA device here; use a machine file with device: cpu"):
        device.require("cuda")
