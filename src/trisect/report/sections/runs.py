"""What each run ran on, as the page shows it: values, links to files, and the command that reruns it."""

import json
import math
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from trisect import wording
from trisect.results.layout import Layout
from trisect.results.notes import Note, note
from trisect.results.record import RunRecord


def rerun_command(experiment: str, gpus: int, results: Path) -> str:
    """The command that measures one run again, and nothing else."""
    target = Layout(results).run(experiment, gpus).decomposition
    return f"snakemake --forcerun benchmark -- {shlex.quote(str(target))}"


def redraw_command(drawing: Path) -> str:
    """The command that makes one file of the results again, as long as what it is drawn from stands."""
    return f"snakemake --force -- {shlex.quote(str(drawing))}"


@dataclass(frozen=True)
class RunView:
    """One run on the page."""

    record: RunRecord
    anchor: str
    devices: str
    difference: float  # the largest relative difference to the single-process result
    memory: float  # bytes: peak of the rank that used most, over all sections
    bounds: str
    files: dict[str, str]  # name to link, relative to the report
    facts: dict[str, str]
    config: str
    rerun: str


def view(record: RunRecord, results: Path) -> RunView:
    """A run's record as text."""
    peaks = (peak for rank in record.ranks for peak in rank.peak_memory_bytes.values())
    return RunView(
        record=record,
        anchor=f"run-{quote(record.experiment, safe='')}-{record.gpus}",
        devices=f"{_counted(_model(rank.device) for rank in record.ranks)} on {_hosts_in_words(len(record.hosts))}",
        difference=max(record.correctness.relative_difference.values(), default=math.nan),
        memory=max(peaks, default=math.nan),
        bounds=_bounds(record),
        files=_files(record),
        facts=_facts(record),
        config=json.dumps(record.config, indent=2, sort_keys=True),
        rerun=rerun_command(record.experiment, record.gpus, results),
    )


def differences(records: Iterable[RunRecord]) -> list[Note]:
    """In what the runs of one experiment differ besides their count: their times may not compare."""
    kinds: dict[str, Callable[[RunRecord], str]] = {
        "size": lambda record: record.size,
        "devices": lambda record: ", ".join(sorted({_model(rank.device) for rank in record.ranks})),
        "backend": lambda record: record.backend,
        "threads per rank": lambda record: ", ".join(map(str, sorted({rank.threads for rank in record.ranks}))),
        "versions": lambda record: _pairs({k: v for k, v in record.versions.items() if k != "trisect"}, " "),
    }
    ordered = sorted(records, key=lambda record: record.gpus)
    found = []
    for kind, value in kinds.items():
        counts: dict[str, list[str]] = {}
        for record in ordered:
            counts.setdefault(value(record), []).append(str(record.gpus))
        if len(counts) > 1:
            values = [{"value": shown, "counts": list(at)} for shown, at in counts.items()]
            found.append(note("runs_differ", what=kind, values=values))
    return found


def hardware(records: Sequence[RunRecord]) -> str:
    """In a line, what the runs ran on."""
    models = sorted({_model(rank.device) for record in records for rank in record.ranks})
    hosts = {host for record in records for host in record.hosts}
    backends = sorted({record.backend for record in records})
    return f"{', '.join(models)} on {_hosts_in_words(len(hosts))}, {', '.join(backends)}"


def _model(device: str) -> str:
    return device.split(" ", 1)[1] if device.startswith("cuda") and " " in device else device


def _counted(items: Iterable[str]) -> str:
    return ", ".join(f"{count} x {item}" for item, count in sorted(Counter(items).items()))


def _pairs(values: Mapping[str, str], between: str) -> str:
    return ", ".join(f"{name}{between}{value}" for name, value in sorted(values.items()))


def _bounds(record: RunRecord) -> str:
    return ", ".join(f"{kind} {wording.percent(bound)}" for kind, bound in record.load_balance_bound.items())


def _hosts_in_words(count: int) -> str:
    return f"{count} hosts" if count != 1 else "one host"


def _hosts(hosts: dict[str, int]) -> str:
    names = sorted(hosts)
    shown = names if len(names) <= 4 else [*names[:2], "...", names[-1]]
    cores = sorted(set(hosts.values()))
    return f"{', '.join(shown)} ({' or '.join(map(str, cores))} cores{' each' if len(names) > 1 else ''})"


def _files(record: RunRecord) -> dict[str, str]:
    run = Layout(Path()).run(record.experiment, record.gpus)
    paths = [
        run.decomposition,
        run.collectives,
        run.iterations,
        run.ranks,
        run.findings,
        run.record,
        run.traces,
        run.logs,
    ]
    return {path.name: quote(path.as_posix()) for path in paths}


def _facts(record: RunRecord) -> dict[str, str]:
    patches = " x ".join(map(str, record.patch_effective))
    if record.patch_effective != record.patch_requested:
        patches += f", reduced from {' x '.join(map(str, record.patch_requested))}"
    correctness = record.correctness
    compared = ", ".join(f"{name} {wording.digits(v, 2)}" for name, v in correctness.relative_difference.items())
    price = record.profiling
    return {
        "size": f"{record.size}; {record.tiles} tiles of {patches}, {record.operators} operators",
        "iterations": ", ".join(f"{count} {kind}" for kind, count in record.iterations.items()),
        "result": f"PSNR {wording.digits(record.psnr_db)} dB; against one process: {compared} "
        f"({correctness.size} size, {correctness.iterations} iterations, tolerance {correctness.tolerance:g})",
        "profiling overhead": f"{wording.times(price.overhead)}: median of {len(price.profiled_s)} iterations with the "
        f"profiler over {len(price.unprofiled_s)} without",
        "load balance that whole pieces allow": _bounds(record),
        "hosts": _hosts(record.hosts),
        "placement as intended": "yes" if record.placement_as_intended else "no",
        "oversubscribed": "yes: ranks shared cores, which looks like scaling loss" if record.oversubscribed else "no",
        "launched by": f"{record.launcher or 'not recorded'}, job {record.job_id or 'not recorded'}",
        "backend": f"{record.backend} on {record.device}",
        "versions": _pairs(record.versions, " "),
        "git revision": record.git_revision or "not in a git folder",
        "environment": _pairs(record.environment, "=") or "none set",
        "configuration": f"sha256 {record.config_sha256}",
        "measurements": f"sha256 {record.measurements_sha256}, equal on all ranks",
    }
