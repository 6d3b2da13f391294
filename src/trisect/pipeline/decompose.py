"""The rule `decompose` and `trisect decompose`: one job's traces to its tables and notes."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pandas as pd

from trisect.analysis.decomposition import Decomposition, decompose
from trisect.pipeline.files import write_all
from trisect.report.text.note_words import as_markdown
from trisect.results.layout import RunLayout
from trisect.results.notes import to_json
from trisect.results.record import RunRecord
from trisect.results.tables import RUN_COLUMNS, TOTAL, write_parquet
from trisect.trace.read_job import read_job


def write_decomposition(
    traces: Path | Iterable[Path],
    out: RunLayout,
    *,
    sections: Sequence[str] | None = None,
    iteration: str = "ProfilerStep",
    annotate: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table,
) -> Decomposition:
    """Decompose one job and write its six files, all or none.

    Args:
        traces: as for `trace.read_job`; so are `sections` and `iteration`.
        out: where decomposition.csv, collectives.csv, iterations.parquet, ranks.parquet, notes.json and findings.md go.
        annotate: what else belongs into decomposition.csv, given its table.

    Raises:
        TrisectError: the traces cannot be read or decomposed, or the files cannot be written.
    """
    result = decompose(read_job(traces, sections=sections, iteration=iteration))
    table = annotate(result.table)
    write_all(
        {
            out.decomposition: lambda path: table.to_csv(path, index=False),
            out.collectives: lambda path: result.collectives.to_csv(path, index=False),
            out.iterations: lambda path: write_parquet(result.iterations, path),
            out.ranks: lambda path: write_parquet(result.ranks, path),
            out.notes: lambda path: path.write_text(to_json(result.caveats)),
            out.findings: lambda path: path.write_text(as_markdown(result.caveats)),
        }
    )
    return result


def of_run(table: pd.DataFrame, record: RunRecord) -> pd.DataFrame:
    """A decomposition's table with what its run's record adds: `experiment` first, tables.RUN_COLUMNS last."""
    return annotated(
        table,
        record.experiment,
        record.load_balance_bound,
        oversubscribed=record.oversubscribed,
        profiling_overhead=record.profiling.overhead,
        peak_memory_bytes={section: record.peak_bytes(section) for section in record.sections}
        | {TOTAL: record.peak_bytes(*record.sections)},
        tile_work=math.nan if record.tile_work is None else record.tile_work,
        tiling_psnr_db=record.quality.tiling_db if record.quality else math.nan,
    )


def annotated(
    table: pd.DataFrame,
    experiment: str,
    bounds: Mapping[str, float],
    *,
    oversubscribed: bool = False,
    profiling_overhead: float = math.nan,
    peak_memory_bytes: Mapping[str, float] = MappingProxyType({}),
    tile_work: float = math.nan,
    tiling_psnr_db: float = math.nan,
) -> pd.DataFrame:
    """A decomposition's table with `experiment` first and tables.RUN_COLUMNS last.

    The bound of a section that does both kinds of work, and of TOTAL, is the larger of the two kinds' bounds:
    its balance lies between them.

    Args:
        table: tables.DECOMPOSITION.
        experiment: its name.
        bounds: best load balance that whole pieces allow, for `tiles` and `operators`.
        oversubscribed: as in tables.RUN_COLUMNS.
        profiling_overhead: as there.
        peak_memory_bytes: as there, by section.
        tile_work: as there; of sections that denoise.
        tiling_psnr_db: as there.
    """
    of_section = {"gradient": bounds["operators"], "denoiser": bounds["tiles"]}
    return table.assign(
        experiment=experiment,
        oversubscribed=oversubscribed,
        load_balance_bound=[of_section.get(section, max(bounds.values())) for section in table["section"]],
        profiling_overhead=profiling_overhead,
        peak_memory_bytes=[float(peak_memory_bytes.get(section, math.nan)) for section in table["section"]],
        tile_work=[1.0 if section == "gradient" else tile_work for section in table["section"]],
        tiling_psnr_db=tiling_psnr_db,
    )[["experiment", *table.columns, *RUN_COLUMNS]]
