"""Runs that the model makes up, decomposed like any trace: measured counts whose truth is known. No trace file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from known import trace_of

from trisect.analysis.decomposition import decompose
from trisect.config.study_settings import Work
from trisect.model.allreduce_cost import FittedLine, of_lines
from trisect.model.fit import Measured
from trisect.model.predict import Model, Problem
from trisect.model.simulate import job, nccl_log
from trisect.pipeline.decompose import annotated
from trisect.results.layout import Layout
from trisect.results.notes import to_json
from trisect.results.tables import write_parquet

CONFIG = Path(__file__).parents[1] / "config"

WORK = {
    "gradient": Work(operators_s=0.4, repeated_s=0.01, other_all_reduces=1, other_bytes=8),
    "denoiser": Work(tiles_s=3.6, repeated_s=0.02),
}
LINE = FittedLine(gpus=2, per_node=1, algorithm="ring", alpha_s=2e-4, gb_per_s=0.5)


def every_host_one(gpus: int) -> int:
    return 1


ALL_REDUCE_COST = of_lines([LINE], every_host_one)


def without_work(problem: Problem) -> Problem:
    """What a fit starts from."""
    return replace(problem, sections={name: Work() for name in problem.sections})


def measured(made: Model, gpus: int, *, iterations: int = 6, algorithm: str = "unknown", seed: int = 0) -> Measured:
    """A run of the model."""
    found = decompose(trace_of(job(made, gpus, iterations=iterations, seed=seed)))
    table = found.table.assign(oversubscribed=False)
    return Measured(gpus, made.all_reduce(gpus).per_node, table, found.ranks, found.collectives, algorithm)


def write_runs(made: Model, layout: Layout, counts: Iterable[int], shared: Iterable[int] = (), logs: bool = False):
    """The files of a decomposition, as from the workflow, of every count; those `shared` are flagged as oversubscribed.

    The logs are NCCL's.
    """
    name, bounds = made.problem.name, {"tiles": 1.0, "operators": 1.0}
    for gpus in counts:
        files, found = layout.run(name, gpus), decompose(trace_of(job(made, gpus, iterations=6, seed=0)))
        files.folder.mkdir(parents=True)
        table = annotated(found.table, name, bounds, oversubscribed=gpus in shared, profiling_overhead=1.0)
        table.to_csv(files.decomposition, index=False)
        found.collectives.to_csv(files.collectives, index=False)
        write_parquet(found.iterations, files.iterations)
        write_parquet(found.ranks, files.ranks)
        files.notes.write_text(to_json(found.caveats))
        if logs and gpus > 1:
            files.nccl.mkdir(parents=True)
            (files.nccl / "nccl.log").write_text(nccl_log(made, gpus))
