"""Ranks as one SLURM job: submit it or find it again, follow it, and cancel what is no longer wanted."""

import signal
import time

from trisect.errors import TrisectError
from trisect.launch import attempt_files, slurm_client
from trisect.launch.job import Attempt
from trisect.launch.session import Interrupted, Launch
from trisect.launch.submission import Submission, submit
from trisect.launch.watch import FILES_LOOK_S, Watch

CANCEL_END_S = 60.0
"""How long SLURM may take to end a cancelled job."""


def run_slurm(launch: Launch) -> Attempt:
    """Run the job to its end on SLURM, submitted now or by an earlier launcher.

    Raises:
        TrisectError: a rank did not end well; the job is out of the queue and its record is removed.
        Interrupted: the launcher is to stop; after SIGINT and SIGTERM the job has been cancelled.
    """
    submission = _found(launch) or submit(launch)
    try:
        return Watch(launch, submission).until_over()
    except Interrupted as stopped:
        if stopped.number in (signal.SIGINT, signal.SIGTERM):
            _end(launch, submission)
            launch.say(f"job {submission.job_id} cancelled")
        else:
            launch.say(f"job {submission.job_id} goes on; run the same command again to take it up")
        raise
    except TrisectError:
        _end(launch, submission)
        raise


def _end(launch: Launch, submission: Submission) -> None:
    """Cancel the job if it is not over, wait until it is, and forget it."""
    assert submission.job_id is not None
    deadline = time.monotonic() + CANCEL_END_S
    state = slurm_client.state_of(submission.job_id)
    if state is None or state.active:
        slurm_client.cancel(submission.job_id)
    while time.monotonic() < deadline and (state is None or state.active):
        launch.waiter.wait(FILES_LOOK_S)
        state = slurm_client.state_of(submission.job_id)
    launch.layout.job.unlink(missing_ok=True)


def _found(launch: Launch) -> Submission | None:
    """The job that an earlier launcher of this run left, if it still runs or has left good results."""
    submission = Submission.read(launch.layout.job)
    if submission is None:
        return None
    job_id = submission.job_id or slurm_client.find(submission.comment)
    if job_id is None:
        return None
    submission = submission.model_copy(update={"job_id": job_id})
    state = slurm_client.state_of(job_id)
    if state is None:
        raise TrisectError(f"{launch.job.name}: SLURM does not answer, and job {job_id} may still run; rerun later")
    same = (submission.payload_sha256, submission.ranks) == (launch.job.payload_sha256, launch.job.ranks)
    if same and (state.active or _has_good_results(launch, submission)):
        launch.say(f"job {job_id} found again ({state.state.lower()}), submitted by an earlier launch")
        submission.write(launch.layout.job)
        return submission
    if state.active:
        launch.say(f"job {job_id} is of another configuration; cancelled")
        _end(launch, submission)
    return None


def _has_good_results(launch: Launch, submission: Submission) -> bool:
    folder = submission.folder(launch.layout)
    return attempt_files.all_well(launch.job, attempt_files.outcomes(launch.job, folder.attempt(folder.latest)))
