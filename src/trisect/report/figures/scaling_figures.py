"""How time, cost and memory change with the count: from tables.SCALING of all experiments to a matplotlib figure.

All draw the 95 % interval wherever the table has one, and oversubscribed points hollow.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from trisect import wording
from trisect.report.figures import bars, series, style
from trisect.report.text.note_words import in_words
from trisect.results.notes import Note, note
from trisect.results.tables import TOTAL

RACE = {
    "compute_max_s": ("compute of the slowest rank", replace(style.PART_LINES["compute"], line="-")),
    "transfer_s": ("transfer", replace(style.PART_LINES["transfer"], line="-")),
}


@style.theme()
def speedup(scaling: pd.DataFrame) -> Figure:
    """How many times as fast each count is as the smallest, per section and combined, against the ideal line."""
    table = scaling.assign(ideal=scaling["gpus"] / scaling["baseline_gpus"])
    figure, panels = series.per_experiment(table, "speedup", "speedup", wording.times)
    tallest = table[["speedup", "speedup_hi", "ideal"]].max().max()
    lowest = min(1.0, table[["speedup", "speedup_lo"]].min().min())
    for axes, experiment in zip(panels, style.experiments_of(table), strict=True):
        rows = table[(table["experiment"] == experiment) & (table["section"] == TOTAL)].sort_values("gpus")
        ideal = style.IDEAL
        gid = style.tag(experiment)
        axes.plot(rows["gpus"], rows["ideal"], color=ideal.colour, linestyle=ideal.line, linewidth=1.0, gid=gid)
        series.log_counts(axes, lowest / 1.15, tallest * 1.25)
        fair = rows[~rows["oversubscribed"].astype(bool)]
        last = (rows if fair.empty else fair).iloc[-1]
        said = in_words(note("speedup_of_ideal", speedup=last["speedup"], ideal=last["ideal"]))
        axes.set_xlabel(f"{style.unit_of(rows)}s\n{said} at {last['gpus']}")
    style.label_rows(panels, "speedup")
    ends = {"combined": style.line_handle(style.COMBINED), "ideal": style.line_handle(style.IDEAL)}
    style.legend(figure, series.section_handles(scaling) | ends, scaling)
    return figure


@style.theme()
def cost(scaling: pd.DataFrame) -> Figure:
    """GPU-seconds relative to the smallest count, as stacked compute, transfer and wait, against the ideal 1.

    A part's height is cost * part / span, so that the three add up to `cost`.
    """
    heights = scaling.assign(
        **{part: scaling["cost"] * scaling[f"{part}_s"] / scaling["span_s"] for part in style.PART_LOOKS}
    )
    figure = bars.stacks(heights[heights["section"] == TOTAL], style.PART_LOOKS, whole="cost")
    look = style.IDEAL
    for axes in figure.axes:
        axes.axhline(1, color=look.colour, linewidth=look.width, linestyle=look.line, zorder=2.5)
    style.label_rows(figure.axes, f"{style.unit_of(scaling)}-seconds, relative")
    style.legend(figure, {**bars.handles(style.PART_LOOKS), "ideal: 1": style.line_handle(look)}, scaling)
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
        drawn = meeting(total)  # with the points that share cores, which are drawn too
        if count is not None:
            said = f"meet at {count:.0f}"
            axes.axvline(count, color=style.INK, linewidth=1.0, linestyle=(0, (1, 2)))
        else:
            said = "do not meet" if drawn is None else "meet only on shared cores"
        axes.set_xlabel(f"{style.unit_of(total)}s\n{said}")
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
def peak_memory(scaling: pd.DataFrame) -> Figure | Note:
    """Peak memory of the rank that used most, in each section; a panel per experiment."""
    if scaling["peak_memory_bytes"].isna().all():
        return note("no_peak_memory")
    figure, panels = series.per_experiment(scaling, "peak_memory_bytes", "peak memory", wording.size, combined=False)
    panels[0].set_ylim(0, 1.08 * float(scaling["peak_memory_bytes"].max()))
    panels[0].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1e9:g}"))
    style.label_rows(panels, "peak memory of a rank, GB")
    style.legend(figure, series.section_handles(scaling), scaling)
    return figure
