"""From two results folders, or two runs' folders, to what differs: the command line and the workflow's compare rule."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from trisect.analysis.differences import COMPARED, SMALLEST_CHANGE, Comparison, compare
from trisect.errors import TrisectError
from trisect.host import write_whole
from trisect.report.text.tables_text import run_name, run_names
from trisect.results.layout import Layout, RunLayout
from trisect.results.notes import Note, note
from trisect.results.record import RunRecord
from trisect.results.tables import DECOMPOSITION, ITERATIONS, RunKey, read_table


@dataclass(frozen=True)
class _Side:
    iterations: pd.DataFrame
    record: RunRecord | None  # `trisect decompose` writes none


def compare_folders(
    before: Path, after: Path, metrics: Sequence[str] = COMPARED, least: float = SMALLEST_CHANGE
) -> Comparison:
    """Compare two results folders, or two runs' folders.

    Args:
        before: a results folder, or the folder of one run (of the workflow, or of `trisect decompose`).
        after: the same after the change.
        metrics: as for `differences.compare`.
        least: as for `differences.compare`.

    Raises:
        TrisectError: no decomposition in a folder, no run on both sides, or a run of another size.
    """
    old, new = _read(before), _read(after)
    shared = sorted(old.keys() & new.keys())
    if not shared:
        raise TrisectError(
            f"{before} has {run_names(old)}, {after} has {run_names(new)}: no run in common; compare the same"
            " experiments at the same counts"
        )
    for run in shared:
        sizes = [_size(side[run]) for side in (old, new)]
        if sizes[0] != sizes[1]:
            raise TrisectError(
                f"{run_name(run)} is of size {sizes[0] or 'unknown'} in {before} and of size {sizes[1] or 'unknown'}"
                f" in {after}; compare runs of one size"
            )
    return Comparison(
        table=compare(_iterations(old), _iterations(new), metrics, least),
        folders=(str(before), str(after)),
        only_before=sorted(old.keys() - new.keys()),
        only_after=sorted(new.keys() - old.keys()),
        changed=[one for run in shared for one in _changes(old[run].record, new[run].record)],
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


def _read(folder: Path) -> dict[RunKey, _Side]:
    runs = Layout(folder).runs() or [RunLayout(folder)]
    return dict(_side(files) for files in runs)


def _side(files: RunLayout) -> tuple[RunKey, _Side]:
    if not files.decomposition.exists():
        raise TrisectError(
            f"{files.decomposition}: no such file; give a results folder, or that of one run, with its decomposition"
        )
    table, iterations = read_table(files.decomposition, DECOMPOSITION), read_table(files.iterations, ITERATIONS)
    gpus = int(table["gpus"].iloc[0])
    record = RunRecord.read(files.record) if files.record.exists() else None
    return (record.experiment if record else "", gpus), _Side(iterations, record)


def _size(side: _Side) -> str:
    return side.record.size if side.record else ""


def _iterations(side: Mapping[RunKey, _Side]) -> dict[RunKey, pd.DataFrame]:
    return {run: found.iterations for run, found in side.items()}


def _changes(before: RunRecord | None, after: RunRecord | None) -> Iterator[Note]:
    """What the records of a run say differently about how it ran."""
    if before is None or after is None:
        return
    old, new = _facts(before), _facts(after)
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            yield note("changed", name=name, before=old.get(name), after=new.get(name))


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
