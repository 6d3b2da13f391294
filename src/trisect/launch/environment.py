"""Which environment variables a job and a rank get: pure functions on mappings, and one context manager."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from trisect.config.machine import Machine
from trisect.launch.job import Attempt
from trisect.launch.placement import Placement, Rendezvous

KEPT = frozenset({"SLURM_CONF"})
"""Says where the cluster's configuration is; nothing works without it."""

LEAKED_PREFIXES = (
    *("SLURM_", "SLURMD_", "SRUN_", "SBATCH_", "SALLOC_", "SUBMITIT_"),
    *("SQUEUE_", "SACCT_", "SCANCEL_", "SCONTROL_"),
    *("PMI_", "PMIX_", "OMPI_", "PALS_", "TORCHELASTIC_", "TRISECT_"),
)
"""Of an outer job or a user's habits: a CPU binding, a task count, an array id, an output format."""

LEAKED_NAMES = frozenset(
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK", "ROLE_RANK"}
    | {"MASTER_ADDR", "MASTER_PORT", "PMI_RANK"}
    | {f"{library}_NUM_THREADS" for library in ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "VECLIB", "GOTO", "BLIS")}
)
"""Of an outer run; the thread counts are Snakemake's, which sets them to 1 for every script."""


def clean(variables: Mapping[str, str]) -> dict[str, str]:
    """`variables` without what an outer job, an outer run or Snakemake left in them."""
    leaked = {name for name in variables if name in LEAKED_NAMES or name.startswith(LEAKED_PREFIXES)} - KEPT
    return {name: value for name, value in variables.items() if name not in leaked}


@contextmanager
def cleaned() -> Iterator[None]:
    """This process's environment without leaked variables, for as long as a job is submitted."""
    before = dict(os.environ)
    kept = clean(before)
    for name in before.keys() - kept.keys():
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(before)


def of_rank(
    variables: Mapping[str, str],
    placement: Placement,
    rendezvous: Rendezvous,
    machine: Machine,
    attempt: Attempt,
    cores: int,
) -> dict[str, str]:
    """The environment of one rank's process, from the scheduler's `variables` and the `cores` that its host shares out.

    The machine file's own `environment` has the last word.
    """
    own = {
        "RANK": placement.rank,
        "WORLD_SIZE": placement.world_size,
        "LOCAL_RANK": placement.local_rank,
        "LOCAL_WORLD_SIZE": placement.local_world_size,
        "MASTER_ADDR": rendezvous.host,
        "MASTER_PORT": rendezvous.port,
        "OMP_NUM_THREADS": max(1, cores // placement.local_world_size),
        "TRISECT_JOB_ID": placement.job_id,
        "TRISECT_LAUNCHER": machine.launcher,
    }
    nccl = {
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,TUNING",
        "NCCL_DEBUG_FILE": attempt.nccl / "nccl-%h-%p.log",
    }
    chosen = own | (nccl if machine.backend == "nccl" else {})
    return clean(variables) | {name: str(value) for name, value in chosen.items()} | machine.environment
