"""From two results folders, or two runs' folders, to what differs: the command line and the workflow's compare rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from trisect.analysis.compare import BETTER, LEAST, METRICS, NOISE, UNKNOWN, WORSE, Comparison, Run, compare
from trisect.errors import TrisectError
from trisect.host import write_whole
from trisect.layout import Layout, RunLayout
from trisect.record import RunRecord
from trisect.tables import TOTAL


@dataclass(frozen=True)
class _Side:
    iterations: pd.DataFrame
    record: RunRecord | None  # `trisect decompose` writes none


def compare_folders(before: Path, after: Path, metrics: Sequence[str] = METRICS, least: float = LEAST) -> Comparison:
    """Compare two results folders, or two runs' folders.

    Args:
        before: a results folder, or the folder of one run (of the workflow, or of `trisect decompose`).
        after: the same after the change.
        metrics: as for `analysis.compare.compare`.
        least: as for `analysis.compare.compare`.

    Raises:
        TrisectError: no decomposition in a folder, no run on both sides, or a run of another size.
    """
    old, new = _read(before), _read(after)
    shared = sorted(old.keys() & new.keys())
    if not shared:
        raise TrisectError(
            f"{before} has {_listed(old)}, {after} has {_listed(new)}: no run in common; compare the same experiments"
            " at the same counts"
        )
    for run in shared:
        sizes = [_size(side[run]) for side in (old, new)]
        if sizes[0] != sizes[1]:
            raise TrisectError(
                f"{_listed([run])} is of size {sizes[0] or 'unknown'} in {before} and of size {sizes[1] or 'unknown'}"
                f" in {after}; compare runs of one size"
            )
    return Comparison(
        table=compare(_iterations(old), _iterations(new), metrics, least),
        only_before=sorted(old.keys() - new.keys()),
        only_after=sorted(new.keys() - old.keys()),
        changed=list(dict.fromkeys(said for run in shared for said in _changes(old[run].record, new[run].record))),
    )


def write_comparison(comparison: Comparison, path: Path) -> None:
    """Write comparison.csv, whole or not at all.

    Raises:
        TrisectError: it cannot be written.
    """
    try:
        write_whole(path, comparison.table.to_csv(index=False))
    except OSError as error:
        raise TrisectError(f"{path}: cannot write there ({error.strerror}); choose another file") from None


def in_words(comparison: Comparison) -> list[str]:
    """What a terminal shows: the span of every run and what differs beyond noise as a table, then the summary."""
    table = comparison.table
    beyond = table["verdict"].isin([WORSE, BETTER])
    whole = (table["section"] == TOTAL) & (table["metric"] == "span_s")
    shown = table.loc[beyond | whole].drop(columns="p_adjusted")
    lines = shown.to_string(index=False, float_format=lambda value: f"{value:.3g}").splitlines() if len(shown) else []
    return [*lines, *summary(comparison)]


def summary(comparison: Comparison) -> list[str]:
    """How many differences of which kind there are, what changed, and which runs stand alone: a sentence each."""
    counts = comparison.table["verdict"].value_counts()
    kinds = ", ".join(f"{counts[kind]} {kind}" for kind in (WORSE, BETTER, NOISE, UNKNOWN) if kind in counts)
    lines = [f"{len(comparison.table)} differences: {kinds}."]
    lines += [f"Changed: {said}." for said in comparison.changed]
    for runs, side in ((comparison.only_before, "before"), (comparison.only_after, "after")):
        if runs:
            lines.append(f"Only {side}: {_listed(runs)}.")
    return lines


def _read(folder: Path) -> dict[Run, _Side]:
    runs = Layout(folder).runs() or [RunLayout(folder)]
    return dict(_side(files) for files in runs)


def _side(files: RunLayout) -> tuple[Run, _Side]:
    try:
        table, iterations = pd.read_csv(files.decomposition), pd.read_parquet(files.iterations)
        gpus = int(table["gpus"].iloc[0])
    except FileNotFoundError as error:
        raise TrisectError(
            f"{error.filename}: no such file; give a results folder, or that of one run, with its decomposition"
        ) from None
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise TrisectError(f"{files.folder}: its decomposition is damaged ({error}); run it again") from None
    record = RunRecord.read(files.record) if files.record.exists() else None
    return (record.experiment if record else "", gpus), _Side(iterations, record)


def _size(side: _Side) -> str:
    return side.record.size if side.record else ""


def _iterations(side: Mapping[Run, _Side]) -> dict[Run, pd.DataFrame]:
    return {run: found.iterations for run, found in side.items()}


def _listed(runs: Sequence[Run] | Mapping[Run, _Side]) -> str:
    return ", ".join(f"{experiment or 'a job'} at {gpus}" for experiment, gpus in sorted(runs))


def _changes(before: RunRecord | None, after: RunRecord | None) -> Iterator[str]:
    """What the records of a run say differently about how it ran."""
    if before is None or after is None:
        return
    old, new = _facts(before), _facts(after)
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            yield f"{name}: {old.get(name, 'none')} before, {new.get(name, 'none')} after"


def _facts(record: RunRecord) -> dict[str, str]:
    devices = ", ".join(sorted({rank.device.split(" ", 1)[-1] for rank in record.ranks}))
    threads = ", ".join(sorted({str(rank.threads) for rank in record.ranks}))
    said = {"devices": devices, "threads": threads, "oversubscribed": str(record.oversubscribed)}
    said |= {"git revision": record.git_revision} | record.versions | record.environment
    return said | dict(_flat("config", {key: value for key, value in record.config.items() if key != "gpus"}))


def _flat(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}", inner)
    else:
        yield name, str(value)
