"""From a folder of traces to files: what the command line and the workflow's decompose rule both do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from trisect.analysis import Decomposition, decompose
from trisect.errors import TrisectError
from trisect.layout import RunLayout
from trisect.record import RunRecord
from trisect.tables import RUN_COLUMNS
from trisect.trace import read_job


def write_decomposition(
    traces: Path,
    out: RunLayout,
    *,
    sections: Sequence[str] | None = None,
    iteration: str = "ProfilerStep",
    annotate: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table,
) -> Decomposition:
    """Decompose one job and write its five files, all or none.

    Args:
        traces: folder of the job's traces, one a rank.
        out: where decomposition.csv, collectives.csv, iterations.parquet, ranks.parquet and findings.md go.
        sections: as for `trace.read_job`.
        iteration: as for `trace.read_job`.
        annotate: what else belongs into decomposition.csv, given its table.

    Raises:
        TrisectError: the traces cannot be read or decomposed, or the files cannot be written.
    """
    result = decompose(read_job(traces, sections=sections, iteration=iteration))
    table = annotate(result.table)
    lines = [f"- {sentence}\n" for sentence in result.findings] or ["Nothing to remark.\n"]
    writers: dict[Path, Callable[[Path], object]] = {
        out.decomposition: lambda path: table.to_csv(path, index=False),
        out.collectives: lambda path: result.collectives.to_csv(path, index=False),
        out.iterations: lambda path: result.iterations.to_parquet(path, index=False),
        out.ranks: lambda path: result.ranks.to_parquet(path, index=False),
        out.findings: lambda path: path.write_text("# Findings\n\n" + "".join(lines)),
    }
    write_all(writers, out.folder)
    return result


def write_all(writers: Mapping[Path, Callable[[Path], object]], folder: Path) -> None:
    """Write every file below `folder` under a temporary name and rename only when all are complete.

    Raises:
        TrisectError: one of them cannot be written; then none has changed.
    """
    partial = {path: path.with_name(path.name + ".partial") for path in writers}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, write in writers.items():
            write(partial[path])
        for path, temporary in partial.items():
            temporary.replace(path)
    except OSError as error:
        raise TrisectError(f"{folder}: cannot write there ({error.strerror}); choose another folder") from None
    finally:
        for temporary in filter(Path.exists, partial.values()):
            temporary.unlink()


def of_run(table: pd.DataFrame, record: RunRecord) -> pd.DataFrame:
    """A decomposition's table with what its run's record adds: `experiment` first, tables.RUN_COLUMNS last."""
    return annotated(
        table,
        record.experiment,
        record.load_balance_bound,
        oversubscribed=record.oversubscribed,
        profiling_price=record.profiling.price,
    )


def annotated(
    table: pd.DataFrame, experiment: str, bounds: Mapping[str, float], *, oversubscribed: bool, profiling_price: float
) -> pd.DataFrame:
    """A decomposition's table with `experiment` first and tables.RUN_COLUMNS last.

    The bound of a section that does both kinds of work, and of TOTAL, is the larger of the two kinds' bounds:
    its balance lies between them.

    Args:
        table: tables.DECOMPOSITION.
        experiment: its name.
        bounds: best load balance that whole pieces allow, for `tiles` and `operators`.
        oversubscribed: as in tables.RUN_COLUMNS.
        profiling_price: as there.
    """
    of_section = {"gradient": bounds["operators"], "denoiser": bounds["tiles"]}
    return table.assign(
        experiment=experiment,
        oversubscribed=oversubscribed,
        load_balance_bound=[of_section.get(section, max(bounds.values())) for section in table["section"]],
        profiling_price=profiling_price,
    )[["experiment", *table.columns, *RUN_COLUMNS]]
