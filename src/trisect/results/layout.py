"""Every path of the results folder. Nothing else in the project joins a path below it."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from trisect.errors import TrisectError


@dataclass(frozen=True)
class RunLayout:
    """Files of one run, below results/{experiment}/gpus-{n}/."""

    folder: Path

    @property
    def record(self) -> Path:
        """What the run ran on; written last, so that it stands only for a run that succeeded."""
        return self.folder / "run.json"

    @property
    def traces(self) -> Path:
        """One gzipped Kineto trace per rank."""
        return self.folder / "traces"

    def trace(self, rank: int) -> Path:
        """The trace of one rank."""
        return self.traces / f"rank-{rank:04d}.json.gz"

    @property
    def logs(self) -> Path:
        """One log per rank, and the launcher's own files below jobs/."""
        return self.folder / "logs"

    @property
    def jobs(self) -> Path:
        """One folder per launch: what the launcher and submitit keep about it."""
        return self.logs / "jobs"

    @property
    def lock(self) -> Path:
        """Held by the launcher that works on the run."""
        return self.logs / "lock"

    @property
    def nccl(self) -> Path:
        """NCCL's own logs, one per process; only where NCCL ran."""
        return self.logs / "nccl"

    def log(self, rank: int) -> Path:
        """What one rank printed: standard output and error together."""
        return self.logs / f"rank-{rank:04d}.log"

    @property
    def progress(self) -> Path:
        """Rank 0's last line: "iteration 3 of 5"."""
        return self.logs / "progress"

    @property
    def job(self) -> Path:
        """What the launcher needs to find a submitted job again; outside Snakemake's outputs."""
        return self.logs / "job.json"

    @property
    def decomposition(self) -> Path:
        """tables.DECOMPOSITION."""
        return self.folder / "decomposition.csv"

    @property
    def collectives(self) -> Path:
        """One row per iteration, section and paired collective."""
        return self.folder / "collectives.csv"

    @property
    def iterations(self) -> Path:
        """Per-iteration values behind the decomposition, as Parquet."""
        return self.folder / "iterations.parquet"

    @property
    def ranks(self) -> Path:
        """The same per rank, iteration and section, as Parquet."""
        return self.folder / "ranks.parquet"

    @property
    def timeline(self) -> Path:
        """The slowest and the median iteration of all ranks, for Perfetto."""
        return self.folder / "timeline.json.gz"

    @property
    def timeline_drawing(self) -> Path:
        """The same, drawn."""
        return self.folder / "timeline.svg"

    @property
    def notes(self) -> Path:
        """What was repaired, left out or is doubtful: results.notes, as JSON."""
        return self.folder / "notes.json"

    @property
    def findings(self) -> Path:
        """The same in words."""
        return self.folder / "findings.md"


@dataclass(frozen=True)
class ProbeLayout(RunLayout):
    """Files of one probe, below results/probe/gpus-{n}/{algorithm}/; of a run's it has the record and the logs."""

    @property
    def all_reduce(self) -> Path:
        """tables.ALL_REDUCE."""
        return self.folder / "all_reduce.csv"


@dataclass(frozen=True)
class Layout:
    """The results folder."""

    root: Path

    def run(self, experiment: str, gpus: int | str) -> RunLayout:
        """The files of one run; `gpus` may be a Snakemake wildcard such as "{gpus}"."""
        return RunLayout(self.root / experiment / f"gpus-{gpus}")

    def runs(self) -> list[RunLayout]:
        """The runs that have a decomposition, by experiment and count."""
        found = (path.parent for path in self.root.glob("*/gpus-*/decomposition.csv"))
        return [RunLayout(folder) for folder in sorted(found)]

    def scaling(self, experiment: str) -> Path:
        """tables.SCALING of one experiment."""
        return self.root / experiment / "scaling.csv"

    def rates(self, experiment: str) -> Path:
        """tables.RATES of one experiment."""
        return self.root / experiment / "rates.csv"

    def probe(self, gpus: int | str, algorithm: str) -> ProbeLayout:
        """The files of one probe; both may be Snakemake wildcards."""
        return ProbeLayout(self.root / "probe" / f"gpus-{gpus}" / algorithm)

    def prediction(self, experiment: str) -> Path:
        """What the model makes of one experiment at all counts, from some that were measured."""
        return self.root / experiment / "prediction.csv"

    def prediction_record(self, experiment: str) -> Path:
        """record.PredictionRecord: what it answers."""
        return self.root / experiment / "prediction.json"

    def prediction_words(self, experiment: str) -> Path:
        """The same, answered in words."""
        return self.root / experiment / "prediction.txt"

    @property
    def fits(self) -> Path:
        """tables.FITS: latency and rate of every count's all_reduces, by `snakemake probe`."""
        return self.root / "probe" / "fits.csv"

    def figure(self, name: str) -> Path:
        """One figure over all experiments, as SVG."""
        return self.root / "figures" / f"{name}.svg"

    @property
    def comparison(self) -> Path:
        """tables.COMPARISON with an earlier sweep."""
        return self.root / "comparison.csv"

    @property
    def report(self) -> Path:
        """The page people read."""
        return self.root / "report.html"

    @property
    def lock(self) -> Path:
        """Held by the snakemake that works in this folder."""
        return self.root / ".lock"

    def require_writable(self) -> None:
        """Try to write where the results will go, leaving nothing behind.

        Raises:
            TrisectError: a file stands in the way, or nothing can be created there.
        """
        existing = next(folder for folder in [self.root, *self.root.absolute().parents] if folder.exists())
        try:
            with tempfile.TemporaryFile(dir=existing):
                pass
        except OSError as error:
            raise TrisectError(
                f"results: cannot write to {str(self.root)!r} ({error.strerror}: {existing}); name another folder"
            ) from None


TAKEN = ("figures", "probe", "study")
"""Folders of the results that are no experiment's."""

_RANK_IN_NAME = re.compile(r"rank[-_]?(\d+)")


def rank_of_file(path: Path) -> int | None:
    """The rank that a trace's file name states ("rank-0003.json.gz", "ddp_rank3.json"), or None."""
    found = _RANK_IN_NAME.findall(path.name)
    return int(found[-1]) if found else None
