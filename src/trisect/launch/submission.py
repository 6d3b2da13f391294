"""Submitting a job, and the record by which a later launcher finds it again."""

import submitit
from submitit.core.utils import FailedJobError, FailedSubmissionError

from trisect.errors import TrisectError
from trisect.launch import attempt_files, slurm_client
from trisect.launch.environment import cleaned
from trisect.launch.job import JobFolder, JsonRecord
from trisect.launch.request import parameters
from trisect.launch.session import Launch
from trisect.launch.supervisor import Supervisor
from trisect.results.layout import RunLayout


class Submission(JsonRecord):
    """RunLayout.job: what a later launcher needs to find the job again. Written before it is submitted."""

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


def submit(launch: Launch) -> Submission:
    """Submit the job, with its record written before and after.

    Raises:
        TrisectError: sbatch refused it; nothing is left in the queue.
    """
    folder = attempt_files.new_folder(launch)
    job, machine = launch.job, launch.machine
    submission = Submission(token=folder.root.name, job_id=None, payload_sha256=job.payload_sha256, ranks=job.ranks)
    submission.write(launch.layout.job)
    try:
        executor = submitit.SlurmExecutor(folder.root)
    except RuntimeError:
        launch.layout.job.unlink(missing_ok=True)
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
        launch.layout.job.unlink(missing_ok=True)
        reason = " ".join(str(error).split())
        raise TrisectError(f"{job.name}: sbatch refused it: {reason}; see slurm in the machine file") from None
    submission = submission.model_copy(update={"job_id": submitted.job_id})
    submission.write(launch.layout.job)
    return submission
