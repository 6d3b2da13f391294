"""Ranks as processes of this machine, through submitit's local executor.

submitit starts them; it neither notices that one has died nor ends the others, so that is done here.
"""

import os

import psutil
import submitit

from trisect.launch import attempt_files
from trisect.launch.environment import cleaned
from trisect.launch.job import Attempt, JobFolder
from trisect.launch.outcome import Outcome
from trisect.launch.session import Launch, Owner
from trisect.launch.supervisor import PEERS_S, Supervisor, end_trees

NO_LIMIT_MINUTES = 60 * 24 * 30
LOCAL_LOOK_S = 0.3
GRACE_S = 3.0


def run_local(launch: Launch) -> Attempt:
    """Run the job to its end on this machine.

    Raises:
        TrisectError: a rank did not end well.
        Interrupted: the launcher is to stop; the ranks have been ended.
    """
    folder = attempt_files.new_folder(launch)
    controller = _submit(launch, folder)
    attempt = folder.attempt(0)
    try:
        found, lost = _watch(launch, controller, attempt)
    finally:
        end_trees([int(controller.job_id)], GRACE_S)
        controller.done()  # collects the controller's exit status
    if not attempt_files.all_well(launch.job, found):
        raise attempt_files.failure(launch, folder, found, lost=lost)
    return attempt


def _submit(launch: Launch, folder: JobFolder) -> submitit.Job[None]:
    devices = "" if launch.machine.device == "cpu" else os.environ.get("CUDA_VISIBLE_DEVICES")
    supervisor = Supervisor(launch.job, launch.machine, launch.layout, folder, Owner.of(), devices)
    executor = submitit.LocalExecutor(folder.root)
    executor.update_parameters(tasks_per_node=launch.job.ranks, timeout_min=NO_LIMIT_MINUTES, stderr_to_stdout=True)
    with cleaned():
        return executor.submit(supervisor)


def _watch(
    launch: Launch, controller: submitit.Job[None], attempt: Attempt
) -> tuple[dict[int, Outcome], frozenset[int]]:
    """Wait until all ranks have ended, or one has ended badly and its peers have had time to say so too."""
    job = launch.job
    while True:
        over = controller.done()  # before the records are read: whatever it left is then there
        found = attempt_files.outcomes(job, attempt)
        running = ((rank, outcome.supervisor_pid) for rank, outcome in found.items() if outcome.status == "running")
        lost = frozenset(rank for rank, pid in running if not psutil.pid_exists(pid))
        if attempt_files.all_well(job, found) or over:
            return found, lost
        if attempt_files.failed(found) or lost:
            launch.waiter.wait(PEERS_S)
            return attempt_files.outcomes(job, attempt), lost
        launch.say(attempt_files.progress(job, attempt) or f"{len(found)} of {job.ranks} ranks started")
        launch.wait(LOCAL_LOOK_S)
