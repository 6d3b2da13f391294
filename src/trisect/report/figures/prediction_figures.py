"""The model's prediction beside what was measured: seconds and efficiency, up to counts that were not measured."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trisect import wording
from trisect.analysis.findings import HALF, PAYS
from trisect.report.figures import series, style
from trisect.results.tables import FITTED, HELD_OUT, TOTAL

EFFICIENCY = style.Look(style.INK, "o", "-", width=1.6)

MARKERS = {FITTED: "s", HELD_OUT: "o"}

A_ROW = 4


@style.theme()
def predicted(prediction: pd.DataFrame) -> Figure:
    """All sections together: modelled values as lines, measured ones as points, those fitted to as squares."""
    total = prediction[prediction["section"] == TOTAL]
    names = style.experiments_of(total)
    rows = [names[first : first + A_ROW] for first in range(0, len(names), A_ROW)]
    panels_of = [(draw, name) for row in rows for draw in (_seconds, _efficiency) for name in row]
    figure, panels = style.panels(len(panels_of), min(A_ROW, len(names)), 2.5, sharey="row")
    for axes, (draw, name) in zip(panels, panels_of, strict=True):
        of_experiment = total[total["experiment"] == name]
        draw(axes, of_experiment)
        style.of_experiment(axes, name)
    lines = {f"{part}, modelled": style.line_handle(look, marker=False) for part, look in style.PART_LINES.items()}
    marks = {
        f"measured, {role}": style.line_handle(style.Look(style.MUTED, marker, "none"))
        for role, marker in MARKERS.items()
        if (total["role"] == role).any()
    }
    style.legend(figure, lines | marks, total)
    return figure


def _seconds(axes: Axes, total: pd.DataFrame) -> None:
    for part, look in style.PART_LINES.items():
        _draw(axes, total, f"{part}_s", part, look, wording.seconds)
    series.log_seconds(axes, total)
    style.label_rows([axes], "s per iteration")


def _efficiency(axes: Axes, total: pd.DataFrame) -> None:
    for level in (PAYS, HALF):
        axes.axhline(level, color=style.MUTED, linewidth=0.9, linestyle=(0, (4, 2)))
    _draw(axes, total, "parallel_efficiency", "parallel efficiency", EFFICIENCY, wording.percent)
    style.gpu_axis(axes, total)
    axes.set_ylim(0, 1.05)
    axes.yaxis.set_major_formatter(style.PERCENT)
    style.label_rows([axes], "parallel efficiency")


def _draw(axes: Axes, total: pd.DataFrame, column: str, words: str, look: style.Look, form: wording.Form) -> None:
    """A modelled line, whose values show on hover, and the measured points."""
    shown = total[total[column] > 0].sort_values("gpus")
    if shown.empty:
        return
    line: dict[str, Any] = {"color": look.colour, "linewidth": look.width}
    axes.plot(shown["gpus"], shown[column], linestyle=look.line, gid=style.tag(shown["experiment"].iloc[0]), **line)
    for row in shown.to_dict("records"):
        hover = f"{style.where(row)}: {words} {form(row[column])}, modelled"
        gid = style.tag(row["experiment"], hover=hover)
        axes.plot(row["gpus"], row[column], marker=".", markersize=3, linestyle="none", gid=gid, **line)
    measured = shown[shown[f"measured_{column}"] > 0]
    ends = {"value": "", "lo": "_lo", "hi": "_hi"}
    points = measured.assign(
        marker=measured["role"].map(MARKERS),
        **{name: measured[f"measured_{column}{end}"] for name, end in ends.items()},
    )
    said = [_hover(row, column, words, form) for row in points.to_dict("records")]
    style.draw_marks(axes, points.assign(hover=said), look.colour)


def _hover(row: Mapping[Any, Any], column: str, words: str, form: wording.Form) -> str:
    said = f"{style.where(row)}: {words} {form(row['value'])} measured, {form(row[column])} modelled"
    return f"{said} ({wording.signed_percent(row[f'error_{column}'])}), {row['role']}{style.flag(row)}"
