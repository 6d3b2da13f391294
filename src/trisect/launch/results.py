"""What ranks left: read it, say how far it is, move it to its place."""

from __future__ import annotations

import shutil
from pathlib import Path

from trisect.errors import TrisectError
from trisect.launch.job import Attempt, Job
from trisect.launch.outcome import Outcome
from trisect.launch.verdict import Verdict
from trisect.layout import RunLayout

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


def progress(attempt: Attempt) -> str:
    """Rank 0's last line, "" before the first."""
    try:
        return attempt.run.progress.read_text().strip()
    except OSError:
        return ""


def publish(attempt: Attempt, layout: RunLayout) -> None:
    """Move what the target wrote to the run's own folder: logs, then data, then the record that makes it stand.

    An old record goes first, so that it never stands beside other data.
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


def failure(job: Job, verdict: Verdict, layout: RunLayout) -> TrisectError:
    """The verdict with the last lines of the log that shows it."""
    lines = [f"{job.name} failed: {verdict.sentence}; {verdict.advice}"]
    if verdict.rank is not None:
        log = layout.log(verdict.rank)
        lines += [f"  log of rank {verdict.rank}: {log}", *(f"    {line}" for line in tail(log))]
    else:
        lines.append(f"  logs: {layout.logs}")
    return TrisectError("\n".join(lines))


def tail(log: Path) -> list[str]:
    """The last lines of a log, or a line that says why there are none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 16_000))
            lines = file.read().decode(errors="replace").rstrip().splitlines()
    except OSError as error:
        return [f"(not readable: {error.strerror})"]
    return lines[-TAIL_LINES:] or ["(empty)"]


def free_bytes(layout: RunLayout) -> int:
    """Free space for files of an ordinary user on the disk that holds the run."""
    return shutil.disk_usage(layout.logs).free
