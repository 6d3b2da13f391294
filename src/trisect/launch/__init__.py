"""Run a job's ranks on this machine or through SLURM; the only package that imports submitit."""

from __future__ import annotations

import shutil
import signal
import time
import uuid

from trisect.config import Machine
from trisect.errors import TrisectError
from trisect.launch import results
from trisect.launch.job import Job, JobFolder
from trisect.launch.local import Interrupted, Report, run_local
from trisect.launch.lock import locked
from trisect.layout import RunLayout

__all__ = ["Job", "run"]


def run(job: Job, machine: Machine, layout: RunLayout, report: Report) -> None:
    """Run a job to its end; return only if every rank returned, and its files stand in `layout`.

    Each rank's standard output and error are in layout.log(rank). The target writes into a folder of its own,
    which is moved to `layout` as the last step, the record last: an attempt that fails leaves earlier results
    as they were. Only one launcher works on a run at a time.

    Args:
        job: what every rank calls.
        machine: where, and on what.
        layout: the run's files.
        report: gets one line whenever something has changed.

    Raises:
        TrisectError: the run did not end well. The first line says what happened, on which rank and host, and
            what to change; then come the last lines of that rank's log.
        KeyboardInterrupt, SystemExit: by SIGINT; by SIGTERM or SIGHUP. A local run's ranks are ended before.
    """
    _check(job, machine, layout)
    try:
        with locked(layout.logs / "lock", f"another launcher of {job.name}"):
            folder = _new_folder(job, layout)
            run_local(job, machine, layout, folder, report)
            results.publish(folder.attempt(folder.latest), layout)
            report(f"{job.name}: done")
    except Interrupted as stopped:
        if stopped.number == signal.SIGINT:
            raise KeyboardInterrupt from None
        raise SystemExit(128 + stopped.number) from None


def _check(job: Job, machine: Machine, layout: RunLayout) -> None:
    machine.check_count(job.ranks)
    if "%" in str(layout.folder.absolute()) or "\\" in str(layout.folder.absolute()):
        raise TrisectError(
            f"results: {layout.folder.absolute()} has a % or a backslash in it, which SLURM reads as a pattern; rename"
        )


def _new_folder(job: Job, layout: RunLayout) -> JobFolder:
    """A folder for this launch; the one before it and its logs go."""
    jobs = layout.logs / "jobs"
    shutil.rmtree(jobs, ignore_errors=True)
    for log in layout.logs.glob("rank-*.log"):
        log.unlink()
    folder = JobFolder(jobs.absolute() / f"{time.strftime('%Y%m%dT%H%M%S')}-{uuid.uuid4().hex[:6]}")
    folder.root.mkdir(parents=True)
    folder.payload.write_text(job.payload)
    return folder
