"""What of an outer job, an outer run and Snakemake reaches a job and a rank."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trisect.config.machine import Machine
from trisect.launch.environment import clean, cleaned, of_rank
from trisect.launch.job import Attempt
from trisect.launch.placement import Placement, Rendezvous, cores_of_rank, device_of

LEAKED = {
    "SLURM_CPU_BIND": "quiet,mask_cpu:0x1",
    "SLURM_CPUS_PER_TASK": "1",
    "SLURM_NTASKS": "99",
    "SLURM_ARRAY_TASK_ID": "3",
    "SBATCH_PARTITION": "debug",
    "SRUN_CPUS_PER_TASK": "7",
    "SQUEUE_FORMAT": "%i",
    "PMIX_RANK": "5",
    "PMI_RANK": "5",
    "RANK": "5",
    "WORLD_SIZE": "99",
    "MASTER_PORT": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
KEPT = {"SLURM_CONF": "/etc/slurm/other.conf", "PATH": "/bin", "PYTHONPATH": "/x", "NCCL_IB_HCA": "mlx5"}

PLACE = Placement(6, 8, 2, 4, 1, "node2", "node1", "17", 0)


def place(**changes: int) -> Placement:
    return Placement(**(PLACE.__dict__ | changes))


def test_what_leaks_is_dropped_and_the_rest_is_kept() -> None:
    assert clean(LEAKED | KEPT) == KEPT


def test_the_process_gets_its_environment_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "5")
    before = dict(os.environ)
    with cleaned():
        assert "RANK" not in os.environ
    assert dict(os.environ) == before


def environment(backend: str, device: str, **own: str) -> dict[str, str]:
    machine = Machine.model_validate(
        {"launcher": "slurm", "device": device, "backend": backend, "gpus_per_node": 4, "environment": own}
    )
    meeting = Rendezvous(host="node1", port=4711)
    return of_rank(LEAKED | KEPT, PLACE, meeting, machine, Attempt(Path("/r/attempt-0")), cores=40)


def test_a_rank_is_told_its_place() -> None:
    seen = environment("gloo", "cpu")
    assert seen == KEPT | {
        "RANK": "6",
        "WORLD_SIZE": "8",
        "LOCAL_RANK": "2",
        "LOCAL_WORLD_SIZE": "4",
        "MASTER_ADDR": "node1",
        "MASTER_PORT": "4711",
        "OMP_NUM_THREADS": "10",
        "TRISECT_JOB_ID": "17",
        "TRISECT_LAUNCHER": "slurm",
    }


def test_nccl_writes_its_own_log() -> None:
    seen = environment("nccl", "cuda")
    assert seen["NCCL_DEBUG"] == "INFO"
    assert seen["NCCL_DEBUG_SUBSYS"] == "INIT,TUNING"
    assert seen["NCCL_DEBUG_FILE"] == "/r/attempt-0/run/logs/nccl/nccl-%h-%p.log"


def test_the_machine_file_has_the_last_word() -> None:
    seen = environment("nccl", "cuda", OMP_NUM_THREADS="3", NCCL_DEBUG="WARN")
    assert (seen["OMP_NUM_THREADS"], seen["NCCL_DEBUG"]) == ("3", "WARN")


def test_places_as_intended() -> None:
    assert PLACE.mistake(8) is None
    assert place(world_size=4).mistake(8) == "world size is 4, intended 8"
    torn = place(rank=2, node=1, local_rank=0).mistake(8)
    assert torn == "rank 2 runs on node 1 as local rank 0, intended node 0 as local rank 2"


def test_the_device_of_a_rank() -> None:
    assert device_of(PLACE, "4,5,6,7") == "6"
    assert device_of(PLACE, "0") is None
    assert device_of(PLACE, "") is None
    assert device_of(PLACE, None) is None


def test_cores_are_those_that_slurm_gave_and_that_are_there() -> None:
    available = len(os.sched_getaffinity(0))
    assert cores_of_rank({}, 4) == available
    assert cores_of_rank({"SLURM_CPUS_PER_TASK": "1000"}, 4) == available
    assert cores_of_rank({"SLURM_CPUS_PER_TASK": "1"}, 1) == 1
