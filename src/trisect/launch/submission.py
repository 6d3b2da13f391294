"""The record of a submitted job, submitting one, and finding again what an earlier launcher submitted."""

from __future__ import annotations

import shlex
from pathlib import Path

import submitit
from pydantic import BaseModel, ConfigDict, ValidationError
from submitit.core.utils import FailedJobError, FailedSubmissionError

from trisect.config.machine import Machine
from trisect.errors import TrisectError
from trisect.host import write_whole
from trisect.launch import results, slurm_client
from trisect.launch.environment import cleaned
from trisect.launch.job import Job, JobFolder
from trisect.launch.session import Launch
from trisect.launch.supervisor import Supervisor
from trisect.results.layout import RunLayout


class Submission(BaseModel):
    """RunLayout.job: what a later launcher needs to find the job again. Written before it is submitted."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    token: str
    """Name of the job's folder, and its comment in the queue: known before SLURM has given an id."""
    job_id: str | None
    payload_sha256: str
    ranks: int

    @property
    def comment(self) -> str:
        """By which the job is found in the queue when its id was not written down in time."""
        return f"trisect:{self.token}"

    def folder(self, layout: RunLayout) -> JobFolder:
        """The launcher's own files of the job."""
        return JobFolder(layout.jobs.absolute() / self.token)

    def write(self, path: Path) -> None:
        """Write whole or not at all."""
        write_whole(path, self.model_dump_json() + "\n")

    @classmethod
    def read(cls, path: Path) -> Submission | None:
        """What stands there, or None where nothing readable does."""
        try:
            return cls.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            return None


def forget(layout: RunLayout) -> None:
    """The job is over and its results are in place, or it has failed: the next launch submits anew."""
    layout.job.unlink(missing_ok=True)


def submit(launch: Launch) -> Submission:
    """Submit the job, with its record written before and after.

    Raises:
        TrisectError: sbatch refused it; nothing is left in the queue.
    """
    folder = results.new_folder(launch)
    job, machine = launch.job, launch.machine
    submission = Submission(token=folder.root.name, job_id=None, payload_sha256=job.payload_sha256, ranks=job.ranks)
    submission.write(launch.layout.job)
    try:
        executor = submitit.SlurmExecutor(folder.root)
    except RuntimeError:
        forget(launch.layout)
        raise TrisectError(
            "srun is not installed here, but the machine file says launcher: slurm; run this on a login node"
        ) from None
    executor.update_parameters(**parameters(job, machine, submission.comment))
    try:
        with cleaned():
            submitted = executor.submit(Supervisor(job, machine, launch.layout, folder, None, None))
    except (FailedJobError, FailedSubmissionError) as error:
        # sbatch may have been cut short after the job was in.
        job_id = slurm_client.find(submission.comment)
        if job_id:
            slurm_client.cancel(job_id)
        forget(launch.layout)
        said = " ".join(str(error).split())
        raise TrisectError(f"{job.name}: sbatch refused it: {said}; see slurm in the machine file") from None
    submission = submission.model_copy(update={"job_id": submitted.job_id})
    submission.write(launch.layout.job)
    return submission


def parameters(job: Job, machine: Machine, comment: str) -> dict[str, object]:
    """submitit's parameters of a job: ceil(ranks / GPUs per node) nodes, one task a GPU, --gres per node."""
    slurm = machine.slurm
    nodes = -(-job.ranks // machine.gpus_per_node)
    tasks_per_node = job.ranks // nodes
    # submitit asks for SIGUSR2 some time before the limit; that ends a process which does not handle it yet, and
    # with a short limit it comes at the start. Nothing here uses the warning, and SIGCONT harms nobody.
    extra: dict[str, object] = {"comment": comment, "distribution": "block", "signal": "CONT@1"}
    extra |= {key: value for key, value in slurm.extra.items() if value is not False}
    chosen: dict[str, object | None] = {
        "job_name": job.name,
        "nodes": nodes,
        "ntasks_per_node": tasks_per_node,
        "cpus_per_task": slurm.cpus_per_gpu,
        "gres": f"gpu:{tasks_per_node}",
        "time": slurm.time_limit_minutes,
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
        "srun_args": [
            "--kill-on-bad-exit=1",
            "--wait=0",
            f"--cpus-per-task={slurm.cpus_per_gpu}",
            *slurm.srun_args,
        ],
        "additional_parameters": extra,
    }
    return {key: value for key, value in chosen.items() if value is not None or key == "wckey"}
