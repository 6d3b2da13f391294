"""Lines over GPU counts: from rows of the scaling table to what `style.draw_series` draws."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
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
    """One series for `style.draw_series`; a point's hover text names it, its value and its interval."""
    rows = scaling[(scaling["experiment"] == experiment) & (scaling["section"] == section)]
    drawn = rows[["experiment", "section", "gpus", "oversubscribed"]].assign(
        value=rows[column], lo=rows[f"{column}_lo"], hi=rows[f"{column}_hi"]
    )
    hover = []
    for row, point in zip(rows.to_dict("records"), drawn.to_dict("records"), strict=True):
        lo, hi = point["lo"], point["hi"]
        spread = "" if np.isnan(lo) else f" ({form(lo)} to {form(hi)})"
        said = f"{words} {form(point['value'])}{spread}, {row['iterations']} iterations"
        hover.append(f"{style.where(row)}: {said}{style.flag(row)}")
    return drawn.assign(hover=hover)


def over_compute(scaling: pd.DataFrame, column: str) -> pd.DataFrame:
    """The table with value, value_lo, value_hi: a time over compute, with outer bounds for its interval."""
    return scaling.assign(
        value=scaling[column] / scaling["compute_s"],
        value_lo=scaling[f"{column}_lo"] / scaling["compute_s_hi"],
        value_hi=scaling[f"{column}_hi"] / scaling["compute_s_lo"],
    )


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


def note_zeros(axes: Axes, rows: pd.DataFrame, column: str) -> None:
    """Say at which counts a value is zero, and so not on a logarithmic axis."""
    zeros = sorted(rows.loc[rows[column] == 0, "gpus"].unique())
    if zeros:
        counts = wording.listed([str(count) for count in zeros])
        style.note(axes, f"zero at {counts} {style.unit_of(rows)}{'s' if zeros != [1] else ''}: not drawn")


def handles(scaling: pd.DataFrame, families: dict[tuple[str, ...], list[str]]) -> dict[str, Line2D]:
    """Legend of panels that hold several experiments: a colour per section, a line style per experiment."""
    looks = style.section_looks(scaling)
    sections = {name: style.line_handle(look) for name, look in looks.items() if name != TOTAL}
    sharing: dict[style.LineStyle, list[str]] = {}
    for experiments in families.values():
        for name, line in style.experiment_lines(experiments).items():
            sharing.setdefault(line, []).append(name)
    dashes = {
        ", ".join(names): style.line_handle(style.Look(style.MUTED, line=line), marker=False)
        for line, names in sharing.items()
    }
    return sections | dashes
