"""What a rank and its run ran on, as the run record wants it."""

import os
import platform
import shutil
import socket
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import torch
import torch.distributed as dist

from trisect.config.plan import Ranks
from trisect.host import usable_cores
from trisect.results.record import RankPlace
from trisect.worker.device import describe

_RECORDED = (
    *("NCCL_", "GLOO_", "OMP_", "MKL_", "OPENBLAS_", "CUDA_VISIBLE", "TORCH_", "SLURM_JOB", "SLURM_CONF"),
    *("PYTORCH_", "CUDNN_", "CUBLAS_", "NVIDIA_"),
)
"""Prefixes of variables that steer communication, threads, memory and arithmetic."""


def host_and_cores() -> tuple[str, set[int]]:
    """This host and the cores that this process may run on."""
    return socket.gethostname(), usable_cores()


def cores_by_host(ranks: Iterable[tuple[str, set[int]]]) -> dict[str, int]:
    """Cores that the ranks of each host have between them; ranks may be bound to different ones."""
    found: dict[str, set[int]] = {}
    for host, cores in ranks:
        found.setdefault(host, set()).update(cores)
    return {host: len(cores) for host, cores in found.items()}


def rank_place(rank: int, device: torch.device) -> RankPlace:
    """This process, as one rank of the run."""
    name, uuid = describe(device)
    host, cores = host_and_cores()
    return RankPlace(
        rank=rank,
        local_rank=int(os.environ.get("LOCAL_RANK", "0")),
        host=host,
        pid=os.getpid(),
        device=name,
        device_uuid=uuid,
        cores=len(cores),
        threads=torch.get_num_threads(),
    )


def of_launch(launched: Ranks, places: Sequence[RankPlace], hosts: Mapping[str, int]) -> dict[str, Any]:
    """The fields of record.Provenance, from every rank's place, in order, and `cores_by_host`."""
    ranks_on = Counter(place.host for place in places)
    return {
        "gpus": launched.gpus,
        "config": launched.model_dump(mode="json"),
        "config_sha256": launched.sha256(),
        "launcher": os.environ.get("TRISECT_LAUNCHER", ""),
        "job_id": os.environ.get("TRISECT_JOB_ID", ""),
        "backend": dist.get_backend(),
        "device": launched.device,
        "placement_as_intended": [place.host for place in places] == list(ranks_on.elements()),
        "versions": versions(),
        "git_revision": _output("git", "describe", "--always", "--dirty", "--abbrev=12"),
        "environment": {key: value for key, value in sorted(os.environ.items()) if key.startswith(_RECORDED)},
        "hosts": hosts,
        "oversubscribed": launched.device == "cpu" and any(n > hosts[host] for host, n in ranks_on.items()),
    }


def versions() -> dict[str, str]:
    """Versions of what the measurement depends on, those that are there."""
    found = {name: version(name) for name in ("trisect", "torch", "deepinv", "numpy", "submitit")}
    found["python"] = platform.python_version()
    found["kernel"] = platform.release()
    if torch.version.cuda is not None and torch.cuda.is_available():
        found["cuda"] = torch.version.cuda
        found["cudnn"] = str(torch.backends.cudnn.version())
        found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
        found["driver"] = _output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").split("\n")[0]
    return found


def _output(*command: str) -> str:
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
