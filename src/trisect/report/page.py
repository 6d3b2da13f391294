"""Everything on one page: findings, figures, tables, and what each run ran on."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import jinja2
import pandas as pd

from trisect.analysis import findings
from trisect.analysis.differences import Comparison
from trisect.report.catalogue import TIMELINE
from trisect.report.figures.reconstruction import Pictures
from trisect.report.figures.style import experiments_of, sections_of
from trisect.report.material import Material
from trisect.report.sections import cells, runs
from trisect.report.sections.comparison import comparison_view
from trisect.report.sections.drawings import figures_view, timelines_view
from trisect.report.sections.movement import movement_view
from trisect.report.sections.predictions import predictions_view
from trisect.report.sections.quality import reconstruction_view
from trisect.report.sections.verdicts import findings_view
from trisect.report.text.note_words import FILTERS
from trisect.results.layout import Layout
from trisect.results.tables import ABOUT, PARTS, RunKey


def render(
    material: Material,
    drawings: Mapping[str, str],
    *,
    results: Path = Path("results"),
    notice: str = "",
    comparison: Comparison | None = None,
    timelines: Mapping[RunKey, str] = MappingProxyType({}),
    pictures: Mapping[RunKey, Pictures] = MappingProxyType({}),
) -> str:
    """The report as one HTML document that asks the network for nothing.

    The same inputs give the same bytes. Whatever a name, a reason or a value contains is shown as text.

    Args:
        drawings: figure name to SVG document, as figures.draw gives it; shown in the order of the catalogue.
        results: the results folder as the workflow names it, for the commands on the page.
        notice: where the numbers are modelled, what to know about that; the page then says it throughout, has no
            runs, and no commands that measure or draw again.
        comparison: with an earlier sweep.
        timelines: experiment and count to SVG document, as timeline_drawing.draw gives it.
        pictures: experiment and count to truth, one measurement and result, as figures.reconstruction draws them.
    """
    scaling, records, unit = material.scaling, material.records, material.unit
    ordered = sorted(records, key=lambda record: (record.experiment, record.gpus))
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            unit=unit,
            notice=notice,
            comparison=comparison_view(comparison) if comparison else None,
            hardware=runs.hardware(records) if records else "",
            counts=sorted(int(count) for count in scaling["gpus"].unique()),
            experiments=experiments_of(scaling),
            sections=sections_of(scaling),
            findings=findings_view(material),
            figures=figures_view(material, drawings, results),
            reconstruction=reconstruction_view(material, pictures),
            movement=movement_view(material),
            predictions=predictions_view(material),
            timelines=timelines_view(timelines, results),
            timeline=TIMELINE.worded(unit),
            tables=_tables(scaling, unit),
            about=ABOUT,
            parts=PARTS,
            runs=[runs.run_view(record, results) for record in ordered],
            missing=[
                (experiment, gpus, reason, runs.rerun_command(experiment, gpus, results))
                for (experiment, gpus), reason in sorted(material.missing.items())
            ],
            pays=findings.PAYS,
            half=findings.HALF,
        )
    )


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("trisect.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= FILTERS
    return environment


def _tables(scaling: pd.DataFrame, unit: str) -> list[dict[str, Any]]:
    return [
        {
            "experiment": str(name),
            "counts": sorted(int(count) for count in rows["gpus"].unique()),
            "oversubscribed": {int(n) for n in rows.loc[rows["oversubscribed"].astype(bool), "gpus"]},
            "baseline": int(rows["baseline_gpus"].iloc[0]),
            "notes": cells.table_notes(rows, unit),
            "main": cells.main_table(rows),
            "all": cells.all_columns(rows),
            "file": quote(Layout(Path()).scaling(str(name)).as_posix()),
        }
        for name, rows in scaling.groupby("experiment", sort=False)
    ]
