"""Every path of the results folder. Nothing else in the project joins a path below it."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from trisect.errors import TrisectError


class _Below:
    """An attribute that is a path below the folder of its layout."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __get__(self, layout: RunLayout | Layout, owner: object = None) -> Path:
        return (layout.root if isinstance(layout, Layout) else layout.folder) / self.path


@dataclass(frozen=True)
class RunLayout:
    """Files of one run, below results/{experiment}/gpus-{n}/."""

    folder: Path

    record = _Below("run.json")  # record.RunRecord: what it ran on; written last, so only where a run succeeded
    reconstruction = _Below(
        "reconstruction.npz"
    )  # truth, one measurement and result, where the weights are a denoiser's
    traces = _Below("traces")  # one gzipped Kineto trace per rank
    logs = _Below("logs")  # one log per rank, and the launcher's own files below jobs/
    jobs = _Below("logs/jobs")  # one folder per launch: what the launcher and submitit keep about it
    job = _Below("logs/job.json")  # what the launcher needs to find a submitted job again; outside Snakemake's outputs
    lock = _Below("logs/lock")  # held by the launcher that works on the run
    nccl = _Below("logs/nccl")  # NCCL's own logs, one per process; only where NCCL ran
    progress = _Below("logs/progress")  # rank 0's last line: "iteration 3 of 5"
    decomposition = _Below("decomposition.csv")  # tables.DECOMPOSITION; a run's is RUN_DECOMPOSITION
    collectives = _Below("collectives.csv")  # tables.PAIRED_COLLECTIVES
    iterations = _Below("iterations.parquet")  # tables.ITERATIONS
    ranks = _Below("ranks.parquet")  # tables.RANKS
    notes = _Below("notes.json")  # results.notes: what was repaired, left out or is doubtful
    findings = _Below("findings.md")  # the same in words
    timeline = _Below("timeline.json.gz")  # the slowest and the median iteration of all ranks, for Perfetto
    timeline_drawing = _Below("timeline.svg")  # the same, drawn

    def trace(self, rank: int) -> Path:
        """The trace of one rank."""
        return self.traces / f"rank-{rank:04d}.json.gz"

    def log(self, rank: int) -> Path:
        """What one rank printed: standard output and error together."""
        return self.logs / f"rank-{rank:04d}.log"


@dataclass(frozen=True)
class ProbeLayout(RunLayout):
    """Files of one probe, below results/probe/gpus-{n}/{algorithm}/; of a run's it has the record and the logs."""

    all_reduce = _Below("all_reduce.csv")  # tables.ALL_REDUCE


@dataclass(frozen=True)
class Layout:
    """The results folder."""

    root: Path

    fits = _Below("probe/fits.csv")  # tables.FITS: latency and rate of every count's all_reduces, by `snakemake probe`
    comparison = _Below("comparison.csv")  # tables.COMPARISON with an earlier sweep
    report = _Below("report.html")  # the page people read
    lock = _Below(".lock")  # held by the snakemake that works in this folder

    def run(self, experiment: str, gpus: int | str) -> RunLayout:
        """The files of one run; `gpus` may be a Snakemake wildcard such as "{gpus}"."""
        return RunLayout(self.root / experiment / f"gpus-{gpus}")

    def runs(self) -> list[RunLayout]:
        """The runs that have a decomposition, by experiment and count."""
        found = (path.parent for path in self.root.glob("*/gpus-*/decomposition.csv"))
        return [RunLayout(folder) for folder in sorted(found)]

    def probe(self, gpus: int | str, algorithm: str) -> ProbeLayout:
        """The files of one probe; both may be Snakemake wildcards."""
        return ProbeLayout(self.root / "probe" / f"gpus-{gpus}" / algorithm)

    def scaling(self, experiment: str) -> Path:
        """tables.SCALING of one experiment."""
        return self.root / experiment / "scaling.csv"

    def rates(self, experiment: str) -> Path:
        """tables.RATES of one experiment."""
        return self.root / experiment / "rates.csv"

    def prediction(self, experiment: str) -> Path:
        """tables.PREDICTION: one experiment at all counts, from some that were measured."""
        return self.root / experiment / "prediction.csv"

    def prediction_record(self, experiment: str) -> Path:
        """record.PredictionRecord: what it answers."""
        return self.root / experiment / "prediction.json"

    def prediction_words(self, experiment: str) -> Path:
        """The same, answered in words."""
        return self.root / experiment / "prediction.txt"

    def figure(self, name: str) -> Path:
        """One figure over all experiments, as SVG."""
        return self.root / "figures" / f"{name}.svg"

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
