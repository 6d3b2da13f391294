"""What each run ran on: its record, links to its files, and the command that measures it again."""

import json
import math
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from trisect.results.layout import Layout
from trisect.results.notes import Note, note
from trisect.results.record import RunRecord
from trisect.wording import counted


def rerun_command(experiment: str, gpus: int, results: Path) -> str:
    """The command that measures one run again, and nothing else."""
    target = Layout(results).run(experiment, gpus).decomposition
    return f"snakemake --forcerun benchmark -- {shlex.quote(str(target))}"


def redraw_command(drawing: Path) -> str:
    """The command that makes one file of the results again, as long as what it is drawn from stands."""
    return f"snakemake --force -- {shlex.quote(str(drawing))}"


def run_view(record: RunRecord, results: Path) -> dict[str, Any]:
    """What the template needs of a run, beside its record."""
    run = Layout(Path()).run(record.experiment, record.gpus)
    files = (
        *(run.decomposition, run.collectives, run.iterations, run.ranks),
        *(run.findings, run.record, run.traces, run.logs),
    )
    return {
        "record": record,
        "anchor": f"run-{quote(record.experiment, safe='')}-{record.gpus}",
        "devices": sorted(Counter(rank.model for rank in record.ranks).items()),
        "hosts": _hosts_in_words(len(record.hosts)),
        "difference": max(record.correctness.relative_difference.values(), default=math.nan),
        "memory": record.peak_bytes(*record.sections),
        "reserved": _most_reserved(record),
        "free": min(
            (rank.least_free_bytes for rank in record.ranks if rank.least_free_bytes is not None), default=None
        ),
        "switched_on": [name.replace("_", " ") for name, on in record.arithmetic.items() if on],
        "files": {path.name: quote(path.as_posix()) for path in files},
        "config": json.dumps(record.config, indent=2, sort_keys=True),
        "rerun": rerun_command(record.experiment, record.gpus, results),
    }


def _most_reserved(record: RunRecord) -> dict[str, int]:
    """By section, what the rank reserved that reserved most; empty on CPU."""
    of_ranks = [rank.peak_reserved_bytes for rank in record.ranks]
    recorded = [name for name in record.sections if any(name in peaks for peaks in of_ranks)]
    return {name: max(peaks.get(name, 0) for peaks in of_ranks) for name in recorded}


def differences(records: Iterable[RunRecord]) -> list[Note]:
    """In what the runs of one experiment differ besides their count: their times may not compare."""
    kinds: dict[str, Callable[[RunRecord], str]] = {
        "size": lambda record: record.size,
        "devices": lambda record: ", ".join(sorted({rank.model for rank in record.ranks})),
        "backend": lambda record: record.backend,
        "threads per rank": lambda record: ", ".join(map(str, sorted({rank.threads for rank in record.ranks}))),
        "versions": lambda record: ", ".join(
            f"{name} {version}" for name, version in sorted(record.versions.items()) if name != "trisect"
        ),
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
    models = sorted({rank.model for record in records for rank in record.ranks})
    hosts = {host for record in records for host in record.hosts}
    backends = sorted({record.backend for record in records})
    return f"{', '.join(models)} on {_hosts_in_words(len(hosts))}, {', '.join(backends)}"


def _hosts_in_words(count: int) -> str:
    return counted(count, "host") if count != 1 else "one host"
