"""What is launched, and the launcher's own files of one launch."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from trisect.config.plan import ProbeRun, Run
from trisect.host import write_whole
from trisect.results.layout import RunLayout


class JsonRecord(BaseModel):
    """One of the launcher's small files, which several processes read while one of them writes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def write(self, path: Path) -> None:
        """Write whole or not at all."""
        write_whole(path, self.model_dump_json() + "\n")

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """The record in a file, or None where nothing readable is there (yet)."""
        try:
            return cls.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            return None


@dataclass(frozen=True)
class Job:
    """One run or probe as the launcher sees it."""

    name: str
    """Says experiment and count: "inference_2d gpus-4"; the job's name in squeue."""
    target: str
    """What every rank calls: "package.module:function", as function(payload: str, folder: Path).
    `folder` is the root of a RunLayout that is private to the launch; its content moves to the run's own
    folder when every rank has ended well."""
    payload: str
    """First argument of the target, JSON; equal on all ranks."""
    ranks: int
    iterations: int
    """How many the target will report in RunLayout.progress."""
    limit_minutes: int | None = None
    """Time limit to ask for; None: the machine's."""

    @classmethod
    def of(cls, measured: Run | ProbeRun, limit_minutes: int | None = None) -> Self:
        """The job that measures a run or a probe."""
        if isinstance(measured, Run):
            name, worker, count = f"{measured.name} gpus-{measured.gpus}", "run", measured.iterations.measured
        else:
            name, worker = f"probe gpus-{measured.gpus} {measured.algorithm}", "probe"
            count = len(measured.payload_bytes)
        return cls(
            name, f"trisect.worker.{worker}_worker:work", measured.payload(), measured.gpus, count, limit_minutes
        )

    @property
    def payload_sha256(self) -> str:
        """Hash by which ranks, and a launch that finds the job again, agree on what is run."""
        return hashlib.sha256(self.payload.encode()).hexdigest()


@dataclass(frozen=True)
class Attempt:
    """Files of one start of a job; a job that SLURM requeues has several."""

    folder: Path

    @property
    def run(self) -> RunLayout:
        """Where the target writes."""
        return RunLayout(self.folder / "run")

    @property
    def rendezvous(self) -> Path:
        """Address and port of rank 0."""
        return self.folder / "rendezvous.json"

    def outcome(self, rank: int) -> Path:
        """How one rank is doing, and how it ended: an Outcome."""
        return self.folder / f"rank-{rank:04d}.json"

    @property
    def nccl(self) -> Path:
        """NCCL's own log, one file per process."""
        return self.run.nccl


@dataclass(frozen=True)
class JobFolder:
    """Files of one launch: those below, and those of submitit."""

    root: Path

    @property
    def payload(self) -> Path:
        """Job.payload."""
        return self.root / "payload.json"

    def attempt(self, restarts: int) -> Attempt:
        """The job's start after `restarts` requeues."""
        return Attempt(self.root / f"attempt-{restarts}")

    @property
    def job_log(self) -> Path:
        """The log of submitit, the scheduler and rank 0's supervisor; a name that fits nothing where there is none."""
        return next(iter(self.root.glob("*_0_log.out")), self.root / "no_log.out")

    @property
    def latest(self) -> int:
        """Requeues before the newest start; 0 where none has started."""
        starts = [int(path.name.removeprefix("attempt-")) for path in self.root.glob("attempt-*")]
        return max(starts, default=0)
