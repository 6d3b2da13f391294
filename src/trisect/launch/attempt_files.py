"""What ranks left: read it, report progress from it, move it to the run's folder."""

import shutil
import time
import uuid
from pathlib import Path

from trisect.errors import TrisectError
from trisect.launch.diagnosis import Evidence, diagnose
from trisect.launch.job import Attempt, Job, JobFolder
from trisect.launch.outcome import Outcome
from trisect.launch.session import Launch
from trisect.launch.slurm_client import SlurmState
from trisect.results.layout import RunLayout

TAIL_LINES = 15


def outcomes(job: Job, attempt: Attempt) -> dict[int, Outcome]:
    """The record of each rank that has left one."""
    read = {rank: Outcome.read(attempt.outcome(rank)) for rank in range(job.ranks)}
    return {rank: outcome for rank, outcome in read.items() if outcome is not None}


def all_well(job: Job, found: dict[int, Outcome]) -> bool:
    """Whether every rank returned."""
    return len(found) == job.ranks and all(o.status == "ok" for o in found.values())


def failed(found: dict[int, Outcome]) -> bool:
    """Whether some rank ended badly."""
    return any(o.status not in ("running", "ok") for o in found.values())


def progress(job: Job, attempt: Attempt) -> str:
    """How far rank 0 is; "" before it first reports."""
    try:
        state = attempt.run.progress.read_text().strip()
    except OSError:
        return ""
    done, slash, of = state.partition("/")
    return f"iteration {done} of {of or job.iterations}" if slash else state


def publish(attempt: Attempt, layout: RunLayout) -> None:
    """Move what the target wrote to the run's own folder: logs, then data, and last the record, which makes the run
    count as finished.

    An old record is removed first, so that it is never found beside other data.
    """
    layout.record.unlink(missing_ok=True)
    layout.logs.mkdir(parents=True, exist_ok=True)
    source = attempt.run
    for path in sorted(source.logs.iterdir()):
        _move(path, layout.logs / path.name)
    data = [path for path in sorted(source.folder.iterdir()) if path not in (source.logs, source.record)]
    for path in data + ([source.record] if source.record.exists() else []):
        _move(path, layout.folder / path.name)


def _move(source: Path, target: Path) -> None:
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target)
    source.replace(target)


def failure(
    launch: Launch,
    folder: JobFolder,
    found: dict[int, Outcome],
    slurm: SlurmState | None = None,
    job_id: str = "",
    lost: frozenset[int] = frozenset(),
) -> TrisectError:
    """The diagnosis with the last lines of the log that shows it."""
    free_bytes = shutil.disk_usage(launch.layout.logs).free
    diagnosis = diagnose(Evidence(launch.job, found, launch.machine, free_bytes, slurm, job_id, lost))
    what, log = "the job", folder.job_log
    if diagnosis.rank is not None:
        what, log = f"rank {diagnosis.rank}", launch.layout.log(diagnosis.rank)
    lines = [f"{launch.job.name} failed: {diagnosis.sentence}; {diagnosis.advice}", f"  log of {what}: {log}"]
    return TrisectError("\n".join(lines + [f"    {line}" for line in tail(log)]))


def tail(log: Path) -> list[str]:
    """The last lines of a log, or a line that says why there are none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 16_000))
            lines = file.read().decode(errors="replace").rstrip().splitlines()
    except OSError as error:
        return [f"(not readable: {error.strerror})"]
    return lines[-TAIL_LINES:] or ["(empty)"]


def new_folder(launch: Launch) -> JobFolder:
    """A folder for this launch; the one before it and its logs are removed.

    Its name tells this launch from every other one, so no file in it can be of an earlier job.
    """
    jobs = launch.layout.jobs.absolute()
    shutil.rmtree(jobs, ignore_errors=True)
    for log in launch.layout.logs.glob("rank-*.log"):
        log.unlink()
    folder = JobFolder(jobs / f"{time.strftime('%Y%m%dT%H%M%S')}-{uuid.uuid4().hex[:8]}")
    folder.root.mkdir(parents=True)
    folder.payload.write_text(launch.job.payload)
    return folder
