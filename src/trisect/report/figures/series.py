"""Lines over GPU counts: from rows of the scaling table to what `style.draw_series` draws."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from trisect import wording
from trisect.report.figures import style
from trisect.results.tables import TOTAL

TWO_DECADES = 100
"""Highest over lowest value of a logarithmic axis, up to which more than powers of ten are named."""


def points(
    scaling: pd.DataFrame, experiment: str, section: str, column: str, words: str, form: wording.Form
) -> pd.DataFrame:
    """One series for `style.draw_series`; a point's hover text names it, its value and its interval, if it has one."""
    rows = scaling[(scaling["experiment"] == experiment) & (scaling["section"] == section)]
    ends = {end: rows.get(f"{column}_{end}", pd.Series(np.nan, rows.index)) for end in ("lo", "hi")}
    drawn = rows.assign(value=rows[column], **ends)
    hover = [
        f"{style.where(row)}: {words} {style.valued(row, form)}, {row['iterations']} iterations{style.flag(row)}"
        for row in drawn.to_dict("records")
    ]
    return drawn.assign(hover=hover)


def per_experiment(
    scaling: pd.DataFrame, column: str, words: str, form: wording.Form, *, combined: bool = True
) -> tuple[Figure, list[Axes]]:
    """A panel per experiment on one scale: a line per section, and a thick one for all combined."""
    looks = style.section_looks(scaling)
    experiments = style.experiments_of(scaling)
    figure, panels = style.panels(len(experiments), 4, 2.7, sharey="all")
    for axes, experiment in zip(panels, experiments, strict=True):
        rows = scaling[scaling["experiment"] == experiment]
        for section in style.sections_of(rows) + [TOTAL] * combined:
            style.draw_series(axes, points(scaling, experiment, section, column, words, form), looks[section])
        style.gpu_axis(axes, rows)
        style.of_experiment(axes, experiment)
    return figure, panels


def for_log_axis(points: pd.DataFrame) -> pd.DataFrame:
    """Points a log axis can show: a zero is left out, an interval that reaches zero ends at a tenth of the value."""
    shown = points[points["value"] > 0]
    return shown.assign(lo=shown["lo"].where(shown["lo"] > 0, shown["value"] / 10).where(shown["lo"].notna()))


def log_seconds(axes: Axes, rows: pd.DataFrame) -> None:
    """Logarithmic axes of the counts in `rows`, and of seconds or another quantity."""
    style.gpu_axis(axes, rows)
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < TWO_DECADES else (1,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())


def log_counts(axes: Axes, low: float, high: float) -> None:
    """A vertical log2 axis with a tick at each power of two."""
    axes.set_yscale("log", base=2)
    axes.set_ylim(low, high)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())


def note_zeros(axes: Axes, rows: pd.DataFrame, column: str) -> None:
    """Say at which counts a value is zero, and so not on a logarithmic axis."""
    zeros = sorted(rows.loc[rows[column] == 0, "gpus"].unique())
    if zeros:
        style.note(axes, f"zero at {wording.counts(zeros, style.unit_of(rows))}: not drawn")


def section_handles(scaling: pd.DataFrame) -> dict[str, Line2D]:
    """Legend of the sections' colours and markers."""
    looks = style.section_looks(scaling)
    return {name: style.line_handle(look) for name, look in looks.items() if name != TOTAL}


def handles(scaling: pd.DataFrame, families: dict[tuple[str, ...], list[str]]) -> dict[str, Line2D]:
    """Legend of panels that hold several experiments: a colour per section, a line style per experiment."""
    sharing: dict[style.LineStyle, list[str]] = {}
    for experiments in families.values():
        for name, line in style.experiment_lines(experiments).items():
            sharing.setdefault(line, []).append(name)
    dashes = {
        ", ".join(names): style.line_handle(style.Look(style.MUTED, line=line), marker=False)
        for line, names in sharing.items()
    }
    return section_handles(scaling) | dashes
