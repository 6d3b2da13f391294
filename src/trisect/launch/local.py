"""Ranks as processes of this machine, through submitit's local executor.

submitit starts them; it neither notices that one has died nor ends the others, so that is done here.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import psutil
import submitit

from trisect.config import Machine
from trisect.errors import TrisectError
from trisect.launch import results
from trisect.launch.environment import cleaned
from trisect.launch.job import Job, JobFolder
from trisect.launch.outcome import Outcome
from trisect.launch.rank import PEERS_S, Owner, Supervisor, end_trees
from trisect.launch.signals import Bell
from trisect.launch.verdict import Evidence, disagreement, judge
from trisect.layout import RunLayout

NO_LIMIT_MINUTES = 60 * 24 * 30
LOOK_S = 0.3
GRACE_S = 3.0

Report = Callable[[str], None]


class Interrupted(BaseException):
    """The launcher was told by a signal to stop, and has cleaned up."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def run_local(job: Job, machine: Machine, layout: RunLayout, folder: JobFolder, report: Report) -> None:
    """Run the job to its end here; see launch.run.

    Raises:
        TrisectError: a rank did not end well.
        Interrupted: by SIGINT, SIGTERM or SIGHUP.
    """
    with Bell({signal.SIGINT, signal.SIGTERM, signal.SIGHUP}) as bell:
        controller = _submit(job, machine, layout, folder)
        try:
            found, lost = _watch(job, controller, folder, report, bell)
        finally:
            end_trees([int(controller.job_id)], GRACE_S)
            controller.done()  # collects the controller's exit status
    if not results.all_well(job, found):
        verdict = judge(Evidence(job, found, machine.collective_timeout_s, results.free_bytes(layout), lost=lost))
        raise results.failure(job, verdict, layout)
    mistake = disagreement(job, found)
    if mistake:
        raise TrisectError(f"{job.name} failed: {mistake}; nothing of it was kept, rerun")


def _submit(job: Job, machine: Machine, layout: RunLayout, folder: JobFolder) -> submitit.LocalJob[None]:
    devices = "" if machine.device == "cpu" else os.environ.get("CUDA_VISIBLE_DEVICES")
    supervisor = Supervisor(job, machine, layout, folder, Owner.this_process(), devices)
    executor = submitit.LocalExecutor(folder.root)
    executor.update_parameters(tasks_per_node=job.ranks, timeout_min=NO_LIMIT_MINUTES, stderr_to_stdout=True)
    with cleaned():
        return executor.submit(supervisor)


def _watch(
    job: Job, controller: submitit.LocalJob[None], folder: JobFolder, report: Report, bell: Bell
) -> tuple[dict[int, Outcome], frozenset[int]]:
    """Wait until all ranks have ended, or one has ended badly and its peers have had time to say so too."""
    attempt = folder.attempt(0)
    said = ""
    while True:
        over = controller.done()  # before the records are read: whatever it left is then there
        found = results.outcomes(job, attempt)
        lost = frozenset(rank for rank, outcome in found.items() if _lost(outcome))
        if results.all_well(job, found) or over:
            return found, lost
        if results.failed(found) or lost:
            bell.wait(PEERS_S)
            return results.outcomes(job, attempt), lost
        now = results.progress(attempt) or f"{len(found)} of {job.ranks} ranks started"
        if now != said:
            report(f"{job.name}: {now}")
            said = now
        stop = bell.wait(LOOK_S)
        if stop:
            raise Interrupted(min(stop))


def _lost(outcome: Outcome) -> bool:
    return outcome.status == "running" and not psutil.pid_exists(outcome.supervisor_pid)
