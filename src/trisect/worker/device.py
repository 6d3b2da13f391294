"""The device a rank computes on: is it there, and does this torch have code for it?"""

import re
from collections.abc import Iterable

import torch

from trisect.errors import TrisectError


def require(device: str) -> None:
    """Check, before anything is set up, that this torch can compute on `device` ("cpu" or "cuda").

    Raises:
        TrisectError: no CUDA device, or one that this build of torch has no code for.
    """
    if device != "cuda":
        return
    if not torch.cuda.is_available():
        raise TrisectError(
            f"device: cuda, but torch {torch.__version__} sees no CUDA device here; "
            "use a machine file with device: cpu, or check the driver and CUDA_VISIBLE_DEVICES"
        )
    require_code(torch.cuda.get_device_capability(), torch.cuda.get_arch_list(), torch.cuda.get_device_name())


def require_code(capability: tuple[int, int], architectures: Iterable[str], name: str) -> None:
    """Check that one of torch's compiled architectures runs on a device of this compute capability.

    Binary code (sm_75) runs on the same major version with the same or a higher minor one; intermediate code
    (compute_75) is compiled for any later device.

    Raises:
        TrisectError: none does.
    """
    known = list(architectures)
    if not any(_runs_on(architecture, capability) for architecture in known):
        wanted, built = f"sm_{capability[0]}{capability[1]}", ", ".join(known) or "none"
        raise TrisectError(
            f"device: torch {torch.__version__} has no code for {name} ({wanted}), only for {built}; "
            "install a build that has it (CUDA 13 builds dropped sm_70: torch 2.10 for CUDA 12.8 still has it)"
        )


def _runs_on(architecture: str, capability: tuple[int, int]) -> bool:
    found = re.fullmatch(r"(sm|compute)_(\d+)(\d)[a-z]?", architecture)
    if found is None:
        return False
    compiled = int(found[2]), int(found[3])
    return compiled <= capability and (found[1] == "compute" or compiled[0] == capability[0])


def describe(device: torch.device) -> tuple[str, str | None]:
    """Name and UUID of a device: ("cpu", None), or ("cuda:0 Tesla V100-SXM2-32GB", "GPU-...")."""
    if device.type != "cuda":
        return device.type, None
    properties = torch.cuda.get_device_properties(device)
    return f"{device} {properties.name}", str(properties.uuid)


def synchronize(device: torch.device) -> None:
    """Wait until the device has done all that was launched; nothing to wait for on CPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
