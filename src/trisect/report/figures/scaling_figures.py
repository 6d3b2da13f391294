"""The figures: one function each, from a table of all experiments to a matplotlib figure.

Those in this file take `tables.SCALING` rows: one per experiment, section and GPU count, and the rows TOTAL. All draw
the 95 % interval wherever the table has one, and oversubscribed points hollow.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from trisect import wording
from trisect.report.figures import bars, series, style
from trisect.results.tables import TOTAL

CAUSE_LOOKS = {
    "imbalance": style.Look("#2f5575"),
    "jitter": style.Look("#e69f00", hatch="////"),
    "late start": style.Look("#b9c4ce"),
}


RACE = {
    "compute_max_s": ("compute of the slowest rank", style.PART_LOOKS["compute"]),
    "transfer_s": ("transfer", style.Look("#b36b00", "s")),  # darker than the bars' transfer: a line has less ink
}


@style.theme()
def cost(scaling: pd.DataFrame) -> Figure:
    """GPU-seconds relative to the smallest count, as stacked compute, transfer and wait, against the ideal 1.

    A part's height is cost * part / span, so that the three add up to `cost`.
    """
    heights = scaling.assign(
        **{part: scaling["cost"] * scaling[f"{part}_s"] / scaling["span_s"] for part in style.PART_LOOKS}
    )
    figure = bars.stacks(heights[heights["section"] == TOTAL], style.PART_LOOKS, whole="cost")
    for axes in figure.axes:
        axes.axhline(1, color=style.INK, linewidth=1.0, linestyle=(0, (4, 2)), zorder=2.5)
    style.label_rows(figure.axes, f"{style.unit_of(scaling)}-seconds, relative")
    ideal = {"ideal: 1": Line2D([], [], color=style.INK, linewidth=1.0, linestyle=(0, (4, 2)))}
    style.legend(figure, {**bars.handles(style.PART_LOOKS), **ideal}, scaling)
    return figure


@style.theme()
def wait_causes(scaling: pd.DataFrame) -> Figure:
    """Wait over compute of each section, as stacked causes: imbalance, jitter, late start."""
    columns = {cause: f"wait_{cause.replace(' ', '_')}_s" for cause in CAUSE_LOOKS}
    shares = {cause: scaling[column] / scaling["compute_s"] for cause, column in columns.items()}
    heights = series.over_compute(scaling.assign(**shares), "wait_s")
    sections = heights[heights["section"] != TOTAL]
    figure = bars.stacks(sections, CAUSE_LOOKS, "value", wording.percent, by=("experiment", "section"))
    style.label_rows(figure.axes, "wait over compute")
    for axes in figure.axes:
        axes.yaxis.set_major_formatter(style.PERCENT)
    style.legend(figure, bars.handles(CAUSE_LOOKS), scaling)
    return figure


@style.theme()
def times(scaling: pd.DataFrame) -> Figure:
    """Compute, transfer and wait in seconds per iteration, on log axes; a row of panels per kind of experiment."""
    families = style.families_of(scaling)
    looks = style.section_looks(scaling)
    figure, panels = style.panels(len(families) * len(style.PART_LOOKS), len(style.PART_LOOKS), 2.75, sharey="row")
    rows = [panels[first : first + len(style.PART_LOOKS)] for first in range(0, len(panels), len(style.PART_LOOKS))]
    for row, (sections, experiments) in zip(rows, families.items(), strict=True):
        lines = style.experiment_lines(experiments)
        for axes, part in zip(row, style.PART_LOOKS, strict=True):
            for experiment, section in ((e, s) for e in experiments for s in looks if s in sections):
                points = series.points(scaling, experiment, section, f"{part}_s", part, wording.seconds)
                look = replace(looks[section], line=lines[experiment])
                style.draw_series(axes, series.for_log_axis(points), look)
            rows_shown = scaling[scaling["experiment"].isin(experiments) & (scaling["section"] != TOTAL)]
            series.log_seconds(axes, rows_shown)
            series.note_zeros(axes, rows_shown, f"{part}_s")
            axes.tick_params(axis="y", labelleft=True)
            axes.set_title(part)
        style.label_rows(row, wording.listed(experiments), "s per iteration")
    style.legend(figure, series.handles(scaling, families), scaling)
    return figure


@style.theme()
def crossing(scaling: pd.DataFrame) -> Figure:
    """Compute of the slowest rank against transfer, all sections together, and where they meet."""
    experiments = style.experiments_of(scaling)
    figure, panels = style.panels(len(experiments), 4, 2.7, sharey="all")
    for axes, experiment in zip(panels, experiments, strict=True):
        total = scaling[(scaling["experiment"] == experiment) & (scaling["section"] == TOTAL)]
        for column, (words, look) in RACE.items():
            points = series.points(scaling, experiment, TOTAL, column, words, wording.seconds)
            style.draw_series(axes, series.for_log_axis(points), look)
        series.log_seconds(axes, total)
        style.of_experiment(axes, experiment)
        count = meeting(total[~total["oversubscribed"].astype(bool)])
        style.note(axes, "do not meet" if count is None else f"meet at {count:.0f}")
        if count is not None:
            axes.axvline(count, color=style.INK, linewidth=1.0, linestyle=(0, (1, 2)))
    style.label_rows(panels, "s per iteration")
    style.legend(figure, {words: style.line_handle(look) for words, look in RACE.values()}, scaling)
    return figure


def meeting(total: pd.DataFrame) -> float | None:
    """The count from which transfer takes at least as long as the slowest rank's compute; None if it never does.

    Between two counts, both are taken as straight lines on logarithmic axes; a count without transfer is passed over.
    """
    rows = total[total["transfer_s"] > 0].sort_values("gpus")
    counts = np.log(rows["gpus"].to_numpy(dtype=float))
    lead = np.log(rows["transfer_s"].to_numpy() / rows["compute_max_s"].to_numpy())
    over = np.flatnonzero(lead >= 0)
    if not over.size:
        return None
    after = over[0]
    if after == 0:
        return float(np.exp(counts[0]))
    share = -lead[after - 1] / (lead[after] - lead[after - 1])
    return float(np.exp(counts[after - 1] + share * (counts[after] - counts[after - 1])))


@style.theme()
def wait_ratio(scaling: pd.DataFrame) -> Figure:
    """Wait over compute per section; a panel per kind of experiment.

    The interval spans wait_lo / compute_hi to wait_hi / compute_lo: at least as wide as the ratio's own.
    """
    table = series.over_compute(scaling, "wait_s")
    families = style.families_of(scaling)
    looks = style.section_looks(scaling)
    figure, panels = style.panels(len(families), 2, 3.1)
    for axes, (sections, experiments) in zip(panels, families.items(), strict=True):
        lines = style.experiment_lines(experiments)
        for experiment, section in ((e, s) for e in experiments for s in looks if s in sections):
            points = series.points(table, experiment, section, "value", "wait over compute", wording.percent)
            style.draw_series(axes, points, replace(looks[section], line=lines[experiment]))
        style.gpu_axis(axes, scaling[scaling["experiment"].isin(experiments)])
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(style.PERCENT)
        style.title(axes, wording.listed(experiments))
        axes.set_ylabel("wait over compute")
    style.legend(figure, series.handles(scaling, families), scaling)
    return figure


@style.theme()
def load_balance(scaling: pd.DataFrame) -> Figure:
    """Load balance per section and combined; a panel per experiment."""
    return _efficiency(scaling, "load_balance", "load balance")


@style.theme()
def serialization_efficiency(scaling: pd.DataFrame) -> Figure:
    """Serialization efficiency per section and combined; a panel per experiment."""
    return _efficiency(scaling, "serialization_efficiency", "serialization efficiency")


@style.theme()
def transfer_efficiency(scaling: pd.DataFrame) -> Figure:
    """Transfer efficiency per section and combined; a panel per experiment."""
    return _efficiency(scaling, "transfer_efficiency", "transfer efficiency")


@style.theme()
def comm_efficiency(scaling: pd.DataFrame) -> Figure:
    """Communication efficiency per section and combined; a panel per experiment."""
    return _efficiency(scaling, "comm_efficiency", "communication efficiency")


def _efficiency(scaling: pd.DataFrame, column: str, words: str) -> Figure:
    looks = style.section_looks(scaling)
    experiments = style.experiments_of(scaling)
    figure, panels = style.panels(len(experiments), 4, 2.7, sharey="all")
    for axes, experiment in zip(panels, experiments, strict=True):
        rows = scaling[scaling["experiment"] == experiment]
        for section in [*style.sections_of(rows), TOTAL]:
            style.draw_series(
                axes, series.points(scaling, experiment, section, column, words, wording.percent), looks[section]
            )
        style.gpu_axis(axes, rows)
        style.of_experiment(axes, experiment)
    panels[0].set_ylim(0, max(1.05, 1.03 * float(scaling[[column, f"{column}_hi"]].max().max())))
    panels[0].yaxis.set_major_formatter(style.PERCENT)
    style.label_rows(panels, words)
    handles = {(name if name != TOTAL else "combined"): style.line_handle(look) for name, look in looks.items()}
    style.legend(figure, handles, scaling)
    return figure
