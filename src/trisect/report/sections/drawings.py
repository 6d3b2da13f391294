"""Figures and timelines as the page shows them: the drawing, its caption, and the command that draws it again."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd
from markupsafe import Markup

from trisect.analysis.baseline import largest_fair_counts
from trisect.report.catalogue import CATALOGUE
from trisect.report.figures import svg
from trisect.report.material import Material
from trisect.report.sections import runs
from trisect.results.layout import Layout
from trisect.wording import listed


def figures_view(material: Material, drawings: Mapping[str, str], results: Path) -> list[dict[str, Any]]:
    """What the template needs: an entry per figure, in the catalogue's order; `missing` says why one shows nothing."""
    shown = _shown(material)
    found = []
    for name, entry in CATALOGUE.items():
        if name not in drawings or entry.table not in shown:
            continue
        words = entry.worded(material.unit)
        label = f"{words.title}. The tables below hold its values."
        found.append(
            {
                "name": name,
                "words": words,
                "missing": svg.reason(drawings[name]),
                "drawing": Markup(svg.inline(drawings[name], name, label)),
                "shows": _shown_runs(shown[entry.table]),
                "redraw": runs.redraw_command(Layout(results).figure(name)),
                "file": quote(Layout(Path()).figure(name).as_posix()),
            }
        )
    return found


def timelines_view(drawings: Mapping[tuple[str, int], str], results: Path) -> list[dict[str, Any]]:
    """What the template needs: an entry per run that is drawn rank by rank."""
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


def _shown(material: Material) -> dict[str, pd.DataFrame]:
    """By the table of a figure, the rows of the runs that it shows."""
    scaling, prediction = material.scaling, material.prediction
    of_ranks = scaling[scaling["gpus"] == scaling["experiment"].map(largest_fair_counts(scaling))]
    shown = {"scaling": scaling, "ranks": of_ranks, "rates": material.rates}
    shown["prediction"] = prediction[prediction["measured_span_s"].notna()]
    return {kind: rows for kind, rows in shown.items() if not rows.empty}


def _shown_runs(scaling: pd.DataFrame) -> str:
    """Which runs a figure shows: experiments with the same counts are named together."""
    together: dict[tuple[int, ...], list[str]] = {}
    for name, rows in scaling.groupby("experiment", sort=False):
        counts = tuple(sorted(int(count) for count in rows["gpus"].unique()))
        together.setdefault(counts, []).append(str(name))
    return "; ".join(f"{listed(names)} at {listed(counts)}" for counts, names in together.items())
