"""Everything on one page: findings, figures, tables, and what each run ran on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import jinja2
import pandas as pd
from markupsafe import Markup

from trisect.analysis import findings
from trisect.analysis.baseline import largest_fair_counts
from trisect.analysis.differences import Comparison
from trisect.report.catalogue import CATALOGUE, TIMELINE
from trisect.report.figures import svg
from trisect.report.figures.style import experiments_of, sections_of
from trisect.report.material import Material
from trisect.report.sections import cells, runs, shares
from trisect.report.sections.comparison import comparison_view
from trisect.report.sections.movement import movement_view
from trisect.report.sections.predictions import predictions_view
from trisect.report.text.notes import FILTERS, all_in_words, in_words
from trisect.results.layout import Layout
from trisect.wording import listed


def render(
    material: Material,
    drawings: Mapping[str, str],
    *,
    results: Path = Path("results"),
    notice: str = "",
    comparison: Comparison | None = None,
    timelines: Mapping[tuple[str, int], str] = MappingProxyType({}),
) -> str:
    """The report as one HTML document that asks the network for nothing.

    The same inputs give the same bytes. Whatever a name, a reason or a value contains is shown as text.

    Args:
        material: what the page is made of.
        drawings: figure name to SVG document, as figures.draw gives it; shown in the order of the catalogue.
        results: the results folder as the workflow names it, for the commands on the page.
        notice: where the numbers are modelled, what to know about that; the page then says it throughout, has no
            runs, and no commands that measure or draw again.
        comparison: with an earlier sweep, or None.
        timelines: experiment and count to SVG document, as timeline_drawing.draw gives it.
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
            findings=_findings(material),
            figures=_figures(material, drawings, results),
            movement=movement_view(material),
            predictions=predictions_view(material),
            timelines=_timelines(timelines, results),
            timeline=TIMELINE.worded(unit),
            tables=_tables(scaling),
            main_columns=[title for title, _ in cells.MAIN.values()],
            runs=[runs.view(record, results) for record in ordered],
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


def _findings(material: Material) -> list[dict[str, Any]]:
    scaling, unit = material.scaling, material.unit
    found = []
    for one in findings.find(scaling, material.notes):
        of_runs = runs.differences(record for record in material.records if record.experiment == one.experiment)
        found.append(
            {
                "experiment": one.experiment,
                "verdict": in_words(one.verdict, unit),
                "reason": in_words(one.reason, unit) if one.reason else "",
                "remedy": in_words(one.remedy, unit) if one.remedy else "",
                "next_loss": in_words(one.next_loss, unit) if one.next_loss else "",
                "caveats": all_in_words([*one.caveats, *of_runs], unit),
                "picture": shares.shares(scaling[scaling["experiment"] == one.experiment]),
            }
        )
    return found


def _shown(material: Material) -> dict[str, pd.DataFrame]:
    """By the table of a figure, the rows of the runs that it shows."""
    scaling, prediction = material.scaling, material.prediction
    of_ranks = scaling[scaling["gpus"] == scaling["experiment"].map(largest_fair_counts(scaling))]
    shown = {"scaling": scaling, "ranks": of_ranks, "rates": material.rates}
    shown["prediction"] = prediction[prediction["measured_span_s"].notna()]
    return {kind: rows for kind, rows in shown.items() if not rows.empty}


def _figures(material: Material, drawings: Mapping[str, str], results: Path) -> list[dict[str, Any]]:
    shown = _shown(material)
    found = []
    for name, entry in CATALOGUE.items():
        if name not in drawings or entry.table not in shown:
            continue
        words = entry.worded(material.unit)
        found.append(
            {
                "name": name,
                "title": words.title,
                "drawing": Markup(
                    svg.inline(drawings[name], name, f"{words.title}. The tables below hold its values.")
                ),
                "caption": words.caption,
                "reading": words.reading,
                "intervals": entry.table != "ranks",
                "modelled": entry.table == "prediction",
                "shows": _shown_runs(shown[entry.table]),
                "redraw": runs.redraw_command(Layout(results).figure(name)),
                "file": quote(Layout(Path()).figure(name).as_posix()),
            }
        )
    return found


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
    return "; ".join(f"{listed(names)} at {listed(counts)}" for counts, names in together.items())
