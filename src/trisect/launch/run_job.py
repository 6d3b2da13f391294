"""Run a job to its end, by the backend that the machine names."""

import signal
from collections.abc import Callable

from trisect.config.machine import Machine
from trisect.errors import TrisectError
from trisect.host import locked
from trisect.launch import attempt_files
from trisect.launch.diagnosis import disagreement
from trisect.launch.job import Attempt, Job
from trisect.launch.local import run_local
from trisect.launch.session import HANDLED, Interrupted, Launch, Owner, Report
from trisect.launch.signals import SignalWaiter
from trisect.launch.slurm import run_slurm
from trisect.results.layout import RunLayout

BACKENDS: dict[str, Callable[[Launch], Attempt]] = {"local": run_local, "slurm": run_slurm}
"""By a machine's `launcher`, one file each: what brings a launch to its end and returns the attempt in which every rank
ended well. It raises TrisectError where none did, and Interrupted where the launcher is to stop."""


def run_job(job: Job, machine: Machine, layout: RunLayout, report: Report, on_behalf_of: int | None = None) -> None:
    """Run a job to its end; return only if every rank returned and its files are in `layout`.

    Each rank's standard output and error are in layout.log(rank). The target writes into a folder of its own,
    which is moved to `layout` as the last step, the record last: an attempt that fails leaves earlier results
    as they were. Only one launcher works on a run at a time.

    A job that an earlier launcher of the same run and payload left on SLURM is found again by its recorded id, and
    taken up instead of submitted again.

    `report` gets one line whenever something has changed. `on_behalf_of` is the process that wants the run; once it is
    gone, a local run is ended and a SLURM job is left alone.

    Raises:
        TrisectError: the run did not end well. The first line says what happened, on which rank and host, and
            what to change; then come the last lines of that rank's log.
        KeyboardInterrupt, SystemExit: by SIGINT; by SIGTERM or SIGHUP. Before that a local run's ranks are ended,
            and a SLURM job is cancelled, except after SIGHUP: it goes on, for the next launcher to take up.
    """
    machine.check_count(job.ranks)
    folder = str(layout.folder.absolute())
    if "%" in folder or "\\" in folder:
        raise TrisectError(f"results: {folder} has a % or a backslash in it, which SLURM reads as a pattern; rename it")
    owner = None if on_behalf_of is None else Owner.of(on_behalf_of)
    try:
        with SignalWaiter(HANDLED) as waiter, locked(layout.lock, f"another launcher of {job.name}"):
            launch = Launch(job, machine, layout, report, waiter, owner)
            attempt = BACKENDS[machine.launcher](launch)
            mistake = disagreement(job, attempt_files.outcomes(job, attempt))
            if mistake:
                raise TrisectError(f"{job.name} failed: {mistake}; nothing of it was kept, rerun")
            attempt_files.publish(attempt, layout)
            layout.job.unlink(missing_ok=True)  # the next launch submits anew
            launch.say("done")
    except Interrupted as stopped:
        if stopped.number == signal.SIGINT:
            raise KeyboardInterrupt from None
        raise SystemExit(128 + stopped.number) from None
