"""What a launch asks its machine for: the parameters of its job, and the same as the line that a dry run shows."""

import shlex
from typing import Any

from trisect.config.machine import Machine
from trisect.launch.job import Job
from trisect.wording import counted

_NOT_OPTIONS = frozenset({"additional_parameters", "setup", "srun_args", "stderr_to_stdout", "wckey"})
"""Keys of `parameters` that are no options of sbatch."""


def parameters(job: Job, machine: Machine, comment: str) -> dict[str, Any]:
    """submitit's parameters of a job: ceil(ranks / GPUs per node) nodes, one task a GPU, --gres per node."""
    slurm = machine.slurm
    nodes = -(-job.ranks // machine.gpus_per_node)
    tasks_per_node = job.ranks // nodes
    # submitit asks for SIGUSR2 some time before the limit; that ends a process which does not handle it yet, and
    # with a short limit it comes at the start. Nothing here uses the warning, and SIGCONT harms nobody.
    extra: dict[str, Any] = {"comment": comment, "distribution": "block", "signal": "CONT@1"}
    extra |= {key: value for key, value in slurm.extra.items() if value is not False}
    chosen: dict[str, Any] = {
        "job_name": job.name,
        "nodes": nodes,
        "ntasks_per_node": tasks_per_node,
        "cpus_per_task": slurm.cpus_per_gpu,
        "gres": f"gpu:{tasks_per_node}",
        "time": job.limit_minutes or slurm.time_limit_minutes,
        "mem": None if slurm.memory_gb_per_node is None else f"{slurm.memory_gb_per_node}GB",
        "account": slurm.account,
        "partition": slurm.partition,
        "qos": slurm.qos,
        "constraint": slurm.constraint,
        "wckey": None,
        "stderr_to_stdout": True,
        "setup": [f"module load {shlex.quote(name)}" for name in slurm.modules] or None,
        # A rank that fails ends its peers; one that is done first does not (--wait=0), whatever the site's default.
        # Since 22.05 srun no longer takes --cpus-per-task from sbatch.
        "srun_args": ["--kill-on-bad-exit=1", "--wait=0", f"--cpus-per-task={slurm.cpus_per_gpu}", *slurm.srun_args],
        "additional_parameters": extra,
    }
    return {key: value for key, value in chosen.items() if value is not None or key == "wckey"}


def request(job: Job, machine: Machine) -> str:
    """Nodes, tasks, time limit and options of a job, in one line; made from `parameters`."""
    if machine.launcher == "local":
        return f"{counted(job.ranks, 'rank')} on this machine, which has {counted(machine.cores_per_host, 'core')}"
    asked = parameters(job, machine, comment="")
    # As in submitit, the additional ones have the last word.
    options = {key: value for key, value in asked.items() if key not in _NOT_OPTIONS} | asked["additional_parameters"]
    limit = options["time"]
    flags = [_flag(key, value) for key, value in sorted(options.items()) if key not in ("comment", "job_name")]
    parts = [
        f"{counted(options['nodes'], 'node')} of {counted(options['ntasks_per_node'], 'task')},"
        f" at most {counted(limit, 'minute') if isinstance(limit, int) else limit}",
        f"sbatch {' '.join(flags)}",
        f"srun {shlex.join(asked['srun_args'])}",
        *asked.get("setup", []),
    ]
    return "; ".join(parts)


def _flag(key: str, value: object) -> str:
    name = f"--{key.replace('_', '-')}"
    return name if value is True else f"{name}={shlex.quote(str(value))}"
