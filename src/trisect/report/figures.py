"""The figures: one function each, from the scaling table of all experiments to a matplotlib figure.

Every function takes `tables.SCALING` rows (one per experiment, section and GPU count, and the rows TOTAL),
draws the 95 % interval wherever the table has one, and draws oversubscribed points hollow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from trisect.errors import TrisectError
from trisect.report import bars, numbers, style, svg
from trisect.tables import SCALING, TOTAL

WAIT_CAUSES = {
    "imbalance": style.Look("#2f5575"),
    "jitter": style.Look("#e69f00", hatch="////"),
    "late start": style.Look("#b9c4ce"),
}


@style.theme()
def cost(scaling: pd.DataFrame) -> Figure:
    """GPU-seconds relative to the smallest count, as stacked compute, transfer and wait, against the ideal 1.

    A part's height is cost * part / span, so that the three add up to `cost`.
    """
    heights = scaling.assign(
        **{part: scaling["cost"] * scaling[f"{part}_s"] / scaling["span_s"] for part in style.PARTS}
    )
    figure = bars.stacks(heights[heights["section"] == TOTAL], style.PARTS, whole="cost")
    for axes in figure.axes:
        axes.axhline(1, color=style.INK, linewidth=1.0, linestyle=(0, (4, 2)), zorder=2.5)
    figure.axes[0].set_ylabel("GPU-seconds, relative")
    ideal = {"ideal: 1": Line2D([], [], color=style.INK, linewidth=1.0, linestyle=(0, (4, 2)))}
    style.legend(figure, {**bars.handles(style.PARTS), **ideal}, _any_oversubscribed(scaling))
    return figure


@style.theme()
def wait_causes(scaling: pd.DataFrame) -> Figure:
    """Wait over compute of all sections together, as stacked causes: imbalance, jitter, late start."""
    columns = {cause: f"wait_{cause.replace(' ', '_')}_s" for cause in WAIT_CAUSES}
    shares = {cause: scaling[column] / scaling["compute_s"] for cause, column in columns.items()}
    heights = _over_compute(scaling.assign(**shares), "wait_s")
    figure = bars.stacks(heights[heights["section"] == TOTAL], WAIT_CAUSES, whole="value", form=numbers.percent)
    figure.axes[0].set_ylabel("wait over compute")
    figure.axes[0].yaxis.set_major_formatter(style.PERCENT)
    style.legend(figure, bars.handles(WAIT_CAUSES), _any_oversubscribed(scaling))
    return figure


@style.theme()
def times(scaling: pd.DataFrame) -> Figure:
    """Compute, transfer and wait in seconds per iteration, on log axes; a row of panels per kind of experiment."""
    families = style.families_of(scaling)
    looks = style.section_looks(scaling)
    figure, panels = style.panels(len(families) * len(style.PARTS), len(style.PARTS), 2.75, sharey="row")
    rows = [panels[first : first + len(style.PARTS)] for first in range(0, len(panels), len(style.PARTS))]
    for row, (sections, experiments) in zip(rows, families.items(), strict=True):
        lines = style.experiment_lines(experiments)
        for axes, part in zip(row, style.PARTS, strict=True):
            for experiment, section in ((e, s) for e in experiments for s in looks if s in sections):
                points = _points(scaling, experiment, section, f"{part}_s", part, numbers.seconds)
                look = replace(looks[section], line=lines[experiment])
                style.draw_series(axes, _for_log_axis(points), look)
            _log_seconds(axes, scaling[scaling["experiment"].isin(experiments)], f"{part}_s")
            axes.set_title(part)
        row[0].set_ylabel(f"{numbers.listed(experiments)}\ns per iteration")
    style.legend(figure, _series_handles(scaling, families), _any_oversubscribed(scaling))
    return figure


@style.theme()
def wait_ratio(scaling: pd.DataFrame) -> Figure:
    """Wait over compute per section; a panel per kind of experiment.

    The interval spans wait_lo / compute_hi to wait_hi / compute_lo: at least as wide as the ratio's own.
    """
    table = _over_compute(scaling, "wait_s")
    families = style.families_of(scaling)
    looks = style.section_looks(scaling)
    figure, panels = style.panels(len(families), 2, 3.1)
    for axes, (sections, experiments) in zip(panels, families.items(), strict=True):
        lines = style.experiment_lines(experiments)
        for experiment, section in ((e, s) for e in experiments for s in looks if s in sections):
            points = _points(table, experiment, section, "value", "wait over compute", numbers.percent)
            style.draw_series(axes, points, replace(looks[section], line=lines[experiment]))
        style.gpu_axis(axes, scaling.loc[scaling["experiment"].isin(experiments), "gpus"])
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(style.PERCENT)
        axes.set_title(numbers.listed(experiments))
        axes.set_ylabel("wait over compute")
    style.legend(figure, _series_handles(scaling, families), _any_oversubscribed(scaling))
    return figure


@style.theme()
def load_balance(scaling: pd.DataFrame) -> Figure:
    """Load balance per section and combined; a panel per experiment."""
    return _efficiency(scaling, "load_balance", "load balance")


@style.theme()
def comm_efficiency(scaling: pd.DataFrame) -> Figure:
    """Communication efficiency per section and combined; a panel per experiment."""
    return _efficiency(scaling, "comm_efficiency", "communication efficiency")


class FigureSpec(NamedTuple):
    """A figure of the report."""

    draw: Callable[[pd.DataFrame], Figure]
    title: str
    caption: str  # file name of its caption


FIGURES = {
    "cost": FigureSpec(cost, "What the same work costs in GPU-seconds", "cost.rst"),
    "times": FigureSpec(times, "Compute, transfer and wait in seconds", "times.rst"),
    "wait_ratio": FigureSpec(wait_ratio, "Wait over compute", "wait_ratio.rst"),
    "wait_causes": FigureSpec(wait_causes, "Why GPUs wait", "wait_causes.rst"),
    "load_balance": FigureSpec(load_balance, "Load balance", "load_balance.rst"),
    "comm_efficiency": FigureSpec(comm_efficiency, "Communication efficiency", "comm_efficiency.rst"),
}
"""Every figure, in the report's order."""


def draw(name: str, scaling: pd.DataFrame) -> str:
    """One figure as an SVG document; the same table gives the same bytes.

    Raises:
        TrisectError: there is no such figure, or the table lacks rows or columns.
    """
    if name not in FIGURES:
        raise TrisectError(f"figure {name}: no such figure; choose one of {', '.join(FIGURES)}")
    lacking = [column for column in SCALING if column not in scaling.columns]
    if lacking or scaling.empty:
        what = f"no column {lacking[0]}" if lacking else "no row"
        raise TrisectError(f"figure {name}: the scaling table has {what}; rerun the decomposition")
    return svg.render(FIGURES[name].draw(scaling))


def save(name: str, scaling: pd.DataFrame, path: Path) -> None:
    """Write one figure to `path` (SVG), whole or not at all.

    Raises:
        TrisectError: as `draw`.
    """
    partial = path.with_name(path.name + ".partial")
    partial.write_text(draw(name, scaling), encoding="utf-8")
    partial.replace(path)


def _efficiency(scaling: pd.DataFrame, column: str, words: str) -> Figure:
    looks = style.section_looks(scaling)
    experiments = style.experiments_of(scaling)
    figure, panels = style.panels(len(experiments), 4, 2.7, sharey="all")
    for axes, experiment in zip(panels, experiments, strict=True):
        rows = scaling[scaling["experiment"] == experiment]
        for section in [*style.sections_of(rows), TOTAL]:
            style.draw_series(
                axes, _points(scaling, experiment, section, column, words, numbers.percent), looks[section]
            )
        style.gpu_axis(axes, rows["gpus"])
        axes.set_title(experiment)
        axes.set_gid(style.tag(experiment))
    panels[0].set_ylim(0, 1.05)
    panels[0].yaxis.set_major_formatter(style.PERCENT)
    panels[0].set_ylabel(words)
    handles = {(name if name != TOTAL else "combined"): style.line_handle(look) for name, look in looks.items()}
    style.legend(figure, handles, _any_oversubscribed(scaling))
    return figure


def _points(
    scaling: pd.DataFrame, experiment: str, section: str, column: str, words: str, form: numbers.Form
) -> pd.DataFrame:
    """One series for `style.draw_series`; a point's hover text names it, its value and its interval."""
    rows = scaling[(scaling["experiment"] == experiment) & (scaling["section"] == section)]
    points = rows[["experiment", "section", "gpus", "oversubscribed"]].assign(
        value=rows[column], lo=rows[f"{column}_lo"], hi=rows[f"{column}_hi"]
    )
    hover = []
    for row, point in zip(rows.to_dict("records"), points.to_dict("records"), strict=True):
        lo, hi = point["lo"], point["hi"]
        spread = "" if np.isnan(lo) else f" ({form(lo)} to {form(hi)})"
        said = f"{words} {form(point['value'])}{spread}, {row['iterations']} iterations"
        hover.append(f"{style.where(row)}: {said}{style.flag(row)}")
    return points.assign(hover=hover)


def _over_compute(scaling: pd.DataFrame, column: str) -> pd.DataFrame:
    """The table with value, value_lo, value_hi: a time over compute, with outer bounds for its interval."""
    return scaling.assign(
        value=scaling[column] / scaling["compute_s"],
        value_lo=scaling[f"{column}_lo"] / scaling["compute_s_hi"],
        value_hi=scaling[f"{column}_hi"] / scaling["compute_s_lo"],
    )


def _for_log_axis(points: pd.DataFrame) -> pd.DataFrame:
    """Points a log axis can show: a zero is left out, an interval that reaches zero ends at a tenth of the value."""
    shown = points[points["value"] > 0]
    return shown.assign(lo=shown["lo"].where(shown["lo"] > 0, shown["value"] / 10).where(shown["lo"].notna()))


def _log_seconds(axes: Axes, rows: pd.DataFrame, column: str) -> None:
    style.gpu_axis(axes, rows["gpus"])
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.tick_params(axis="y", labelleft=True)
    zeros = sorted(rows.loc[(rows["section"] != TOTAL) & (rows[column] == 0), "gpus"].unique())
    if zeros:
        counts = numbers.listed([str(count) for count in zeros])
        note = f"zero at {counts} GPU{'s' if zeros != [1] else ''}: not drawn"
        axes.set_title(note, loc="right", fontsize=8, fontweight="normal", color=style.MUTED)


def _series_handles(scaling: pd.DataFrame, families: dict[tuple[str, ...], list[str]]) -> dict[str, Line2D]:
    """Legend of panels that hold several experiments: a colour per section, a line style per experiment."""
    looks = style.section_looks(scaling)
    sections = {name: style.line_handle(look) for name, look in looks.items() if name != TOTAL}
    sharing: dict[style.Line, list[str]] = {}
    for experiments in families.values():
        for name, line in style.experiment_lines(experiments).items():
            sharing.setdefault(line, []).append(name)
    dashes = {
        ", ".join(names): style.line_handle(style.Look(style.MUTED, line=line), marker=False)
        for line, names in sharing.items()
    }
    return sections | dashes


def _any_oversubscribed(scaling: pd.DataFrame) -> bool:
    return bool(scaling["oversubscribed"].any())
