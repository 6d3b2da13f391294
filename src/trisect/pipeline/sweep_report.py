"""The rules `figure` and `report`: figures and the page, over the runs that are finished."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from trisect.analysis.baseline import largest_fair_counts
from trisect.config.plan import Sweep
from trisect.host import write_whole
from trisect.pipeline.compare import compare_folders
from trisect.pipeline.finished_runs import finished_runs, pictures_of, predictions_of, ranks_of, stacked
from trisect.report import page
from trisect.report.catalogue import CATALOGUE
from trisect.report.figures.draw import draw
from trisect.report.material import Material
from trisect.results.layout import Layout
from trisect.results.tables import RATES, SCALING, read_table


def write_figure(name: str, layout: Layout, experiments: Sequence[str], path: Path, unit: str) -> None:
    """Draw one figure of the catalogue over the files of a whole sweep.

    Raises:
        TrisectError: a file is missing, damaged or of another version.
    """
    write_whole(path, draw(name, _table(CATALOGUE[name].table, layout, experiments), unit))


def _table(kind: str, layout: Layout, experiments: Sequence[str]) -> pd.DataFrame:
    if kind == "prediction":
        return predictions_of(layout, experiments)[0]
    if kind == "rates":
        return stacked([read_table(layout.rates(name), RATES) for name in experiments], RATES)
    scaling = stacked([read_table(layout.scaling(name), SCALING) for name in experiments], SCALING)
    return ranks_of(layout, scaling) if kind == "ranks" else scaling


def drawings_of(material: Material) -> dict[str, str]:
    """The figures whose table has rows, as SVG."""
    tables = {name: material.tables[entry.table] for name, entry in CATALOGUE.items()}
    return {name: draw(name, table, material.unit) for name, table in tables.items() if not table.empty}


def write_report(sweep: Sweep, layout: Layout, drawings: Mapping[str, str] | None = None) -> Material:
    """Write the report over the finished runs, whole or not at all.

    Args:
        drawings: the figures as SVG, by name; None draws them.

    Raises:
        TrisectError: as for `finished_runs`, and for `compare.compare_folders` where the settings name `against`.
    """
    material = finished_runs(sweep, layout)
    against = sweep.settings.against
    comparison = compare_folders(Path(against), layout.root) if against else None
    drawn = drawings_of(material) if drawings is None else drawings
    html = page.render(
        material,
        drawn,
        results=layout.root,
        comparison=comparison,
        timelines=_timelines(layout, material.scaling),
        pictures=pictures_of(layout, material.records),
    )
    write_whole(layout.report, html)
    return material


def _timelines(layout: Layout, scaling: pd.DataFrame) -> dict[tuple[str, int], str]:
    """The drawn timelines that there are, of the runs that are shown rank by rank."""
    drawings = {run: layout.run(*run).timeline_drawing for run in largest_fair_counts(scaling).items()}
    return {run: path.read_text() for run, path in drawings.items() if path.exists()}
