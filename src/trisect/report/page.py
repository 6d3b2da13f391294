"""Everything on one page: findings, figures, tables, and what each run ran on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import jinja2
import pandas as pd
from markupsafe import Markup

from trisect.analysis.compare import Comparison
from trisect.layout import Layout
from trisect.record import RunRecord
from trisect.report import cells, differences, findings, forecasts, heat, numbers, picture, runs, svg, transfers
from trisect.report.catalogue import CATALOGUE, Kind
from trisect.report.forecasts import Predictions
from trisect.report.style import experiments_of, sections_of
from trisect.report.transfers import Movement


def render(
    scaling: pd.DataFrame,
    records: Sequence[RunRecord],
    missing: Mapping[tuple[str, int], str],
    drawings: Mapping[str, str],
    captions: Mapping[str, str],
    *,
    results: Path = Path("results"),
    notice: str = "",
    comparison: Comparison | None = None,
    timelines: Mapping[tuple[str, int], str] = MappingProxyType({}),
    movement: Movement | None = None,
    predictions: Predictions | None = None,
) -> str:
    """The report as one HTML document that asks the network for nothing.

    The same inputs give the same bytes. Whatever a name, a reason or a value contains is shown as text.

    Args:
        scaling: rows of tables.SCALING of all experiments.
        records: of the runs behind them, in any order.
        missing: runs that were asked for and are not there, with the reason.
        drawings: figure name to SVG document, as figures.draw gives it; shown in the order of the catalogue.
        captions: figure name to caption text, paragraphs parted by blank lines.
        results: the results folder as the workflow names it, for the commands on the page.
        notice: where the numbers are modelled, what to know about that; the page then says it throughout, has no
            runs, and no commands that measure or draw again.
        comparison: with an earlier sweep, or None.
        timelines: experiment and count to SVG document, as timeline.draw gives it; captioned captions["timeline"].
        movement: implied rates, and what was probed; None where nothing ran.
        predictions: of the experiments that have one, or None.
    """
    unit = runs.unit_of(records)
    ordered = sorted(records, key=lambda record: (record.experiment, record.gpus))
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            unit=unit,
            notice=notice,
            comparison=differences.view(comparison) if comparison else None,
            hardware=runs.hardware(records) if records else "",
            counts=sorted(int(count) for count in scaling["gpus"].unique()),
            experiments=experiments_of(scaling),
            sections=sections_of(scaling),
            findings=_findings(scaling, records, unit),
            figures=_figures(_shown(scaling, movement, predictions), drawings, captions, results),
            movement=transfers.view(movement, unit) if movement else None,
            predictions=forecasts.view(predictions) if predictions and not predictions.table.empty else [],
            timelines=_timelines(timelines, results),
            timeline_caption=_paragraphs(captions, "timeline"),
            tables=_tables(scaling),
            main_columns=[title for title, _ in cells.MAIN.values()],
            runs=[runs.view(record, results) for record in ordered],
            missing=[
                (experiment, gpus, reason, runs.rerun_command(experiment, gpus, results))
                for (experiment, gpus), reason in sorted(missing.items())
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
    environment.filters |= {"percent": numbers.percent, "times": numbers.times, "size": numbers.size}
    environment.filters |= {"unbroken": lambda text: re.sub(r"(?<=\d) (?=[%\w])", "\u00a0", text)}  # "80 %" on one line
    environment.filters |= {"digits": numbers.digits, "listed": lambda items: numbers.listed([str(i) for i in items])}
    return environment


def _findings(scaling: pd.DataFrame, records: Sequence[RunRecord], unit: str) -> list[dict[str, Any]]:
    return [
        {
            "finding": found,
            "doubts": [*found.doubts, *runs.differences(r for r in records if r.experiment == found.experiment)],
            "picture": picture.shares(scaling[scaling["experiment"] == found.experiment]),
        }
        for found in findings.find(scaling, unit)
    ]


def _shown(
    scaling: pd.DataFrame, movement: Movement | None, predictions: Predictions | None
) -> dict[Kind, pd.DataFrame]:
    """By kind of figure, the rows of the runs that it shows."""
    of_ranks = scaling[scaling["gpus"] == scaling["experiment"].map(heat.chosen_counts(scaling))]
    shown: dict[Kind, pd.DataFrame] = {"scaling": scaling, "ranks": of_ranks}
    if movement is not None:
        shown["rates"] = movement.rates
    if predictions is not None:
        shown["prediction"] = predictions.table[predictions.table["measured_span_s"].notna()]
    return {kind: rows for kind, rows in shown.items() if not rows.empty}


def _figures(
    shown: Mapping[Kind, pd.DataFrame], drawings: Mapping[str, str], captions: Mapping[str, str], results: Path
) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "title": entry.title,
            "drawing": Markup(svg.inline(drawings[name], name, f"{entry.title}. The tables below hold its values.")),
            "caption": _paragraphs(captions, name),
            "intervals": entry.table != "ranks",
            "modelled": entry.table == "prediction",
            "shows": _shown_runs(shown[entry.table]),
            "redraw": runs.redraw_command(Layout(results).figure(name)),
            "file": quote(Layout(Path()).figure(name).as_posix()),
        }
        for name, entry in CATALOGUE.items()
        if name in drawings and entry.table in shown
    ]


def _paragraphs(captions: Mapping[str, str], name: str) -> list[str]:
    return [" ".join(part.split()) for part in captions.get(name, "").split("\n\n") if part.strip()]


def _timelines(drawings: Mapping[tuple[str, int], str], results: Path) -> list[dict[str, Any]]:
    found = []
    for place, ((experiment, gpus), drawing) in enumerate(drawings.items()):
        files = Layout(Path()).run(experiment, gpus)
        label = f"Timeline of {experiment} at {gpus}"
        found.append(
            {
                "experiment": experiment,
                "label": label,
                "name": f"timeline-{place}",
                "drawing": Markup(svg.inline(drawing, f"timeline-{place}", f"{label}.")),
                "redraw": runs.redraw_command(Layout(results).run(experiment, gpus).timeline_drawing),
                "file": quote(files.timeline.as_posix()),
                "image": quote(files.timeline_drawing.as_posix()),
            }
        )
    return found


def _tables(scaling: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {
            "experiment": str(name),
            "counts": sorted(int(count) for count in rows["gpus"].unique()),
            "oversubscribed": {int(n) for n in rows.loc[rows["oversubscribed"].astype(bool), "gpus"]},
            "baseline": int(rows["baseline_gpus"].iloc[0]),
            "notes": cells.notes(rows),
            "main": cells.main_table(rows),
            "all": cells.all_columns(rows),
            "file": quote(Layout(Path()).scaling(str(name)).as_posix()),
        }
        for name, rows in scaling.groupby("experiment", sort=False)
    ]


def _shown_runs(scaling: pd.DataFrame) -> str:
    """Which runs a figure shows: experiments with the same counts are named together."""
    together: dict[tuple[int, ...], list[str]] = {}
    for name, rows in scaling.groupby("experiment", sort=False):
        counts = tuple(sorted(int(count) for count in rows["gpus"].unique()))
        together.setdefault(counts, []).append(str(name))
    return "; ".join(
        f"{numbers.listed(names)} at {numbers.listed([str(count) for count in counts])}"
        for counts, names in together.items()
    )
