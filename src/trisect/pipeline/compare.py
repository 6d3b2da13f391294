"""From two results folders, or two runs' folders, to what differs: the command line and the workflow's compare rule."""

from collections.abc import Iterator, Mapping, Sequence
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

_Side = dict[RunKey, tuple[pd.DataFrame, RunRecord | None]]
"""tables.ITERATIONS and the record of each run; `trisect decompose` writes no record."""


def compare_folders(
    before: Path, after: Path, metrics: Sequence[str] = COMPARED, least: float = SMALLEST_CHANGE
) -> Comparison:
    """Compare two results folders, or two runs' folders (of the workflow, or of `trisect decompose`).

    `metrics` and `least` are as for `differences.compare`.

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
        ours, theirs = (record.size if record else "unknown" for _, record in (old[run], new[run]))
        if ours != theirs:
            raise TrisectError(
                f"{run_name(run)} is of size {ours} in {before} and of size {theirs} in {after};"
                " compare runs of one size"
            )
    earlier, later = ({run: table for run, (table, _) in side.items()} for side in (old, new))
    return Comparison(
        table=compare(earlier, later, metrics, least),
        folders=(str(before), str(after)),
        only_before=sorted(old.keys() - new.keys()),
        only_after=sorted(new.keys() - old.keys()),
        changed=[one for run in shared for one in _changes(old[run][1], new[run][1])],
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


def _read(folder: Path) -> _Side:
    found: _Side = {}
    for files in Layout(folder).runs() or [RunLayout(folder)]:
        if not files.decomposition.exists():
            raise TrisectError(
                f"{files.decomposition}: no such file;"
                " give a results folder, or that of one run, with its decomposition"
            )
        gpus = int(read_table(files.decomposition, DECOMPOSITION)["gpus"].iloc[0])
        record = RunRecord.read(files.record) if files.record.exists() else None
        found[record.experiment if record else "", gpus] = read_table(files.iterations, ITERATIONS), record
    return found


def _changes(before: RunRecord | None, after: RunRecord | None) -> Iterator[Note]:
    """What the records of a run say differently about how it ran."""
    if before is None or after is None:
        return
    old, new = _facts(before), _facts(after)
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            yield note("changed", name=name, before=old.get(name), after=new.get(name))


def _facts(record: RunRecord) -> dict[str, str]:
    devices = ", ".join(sorted({rank.model for rank in record.ranks}))
    threads = ", ".join(sorted({str(rank.threads) for rank in record.ranks}))
    said = {"devices": devices, "threads": threads, "oversubscribed": str(record.oversubscribed)}
    said |= {"git revision": record.git_revision} | record.versions | record.environment
    said |= {f"arithmetic.{name}": str(on) for name, on in record.arithmetic.items()}
    return said | dict(_flat("config", {key: value for key, value in record.config.items() if key != "gpus"}))


def _flat(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}", inner)
    else:
        yield name, str(value)
