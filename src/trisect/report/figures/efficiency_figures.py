"""Efficiencies and what lowers them, wait above all: from tables.SCALING of all experiments to a matplotlib figure."""

import pandas as pd
from matplotlib.figure import Figure

from trisect import wording
from trisect.report.figures import bars, series, style
from trisect.results.notes import Note, note
from trisect.results.tables import TOTAL, WAIT_CAUSES

PRODUCTS = {
    "parallel_efficiency": ("parallel efficiency", "parallel\nefficiency"),
    "load_balance": ("load balance", "= load\nbalance"),
    "comm_efficiency": ("communication efficiency", "\u00d7 communication,\nwhich is"),
    "serialization_efficiency": ("serialization efficiency", "serialization\nefficiency"),
    "transfer_efficiency": ("transfer efficiency", "\u00d7 transfer\nefficiency"),
}
"""Columns of panels: what each is called, and the heading that reads as a formula from left to right."""


@style.theme()
def efficiencies(scaling: pd.DataFrame) -> Figure:
    """Parallel efficiency and its factors, per section and combined: a row of small panels per experiment."""
    looks = style.section_looks(scaling)
    experiments = style.experiments_of(scaling)
    figure, panels = style.panels(len(experiments) * len(PRODUCTS), len(PRODUCTS), 1.45, sharey="all")
    figure.set_figheight(figure.get_figheight() + 0.4)  # for the headings
    places = [(experiment, column) for experiment in experiments for column in PRODUCTS]
    for axes, (experiment, column) in zip(panels, places, strict=True):
        rows = scaling[scaling["experiment"] == experiment]
        words, heading = PRODUCTS[column]
        for section in [*style.sections_of(rows), TOTAL]:
            points = series.points(scaling, experiment, section, column, words, wording.percent)
            style.draw_series(axes, points, looks[section], size=4.0)
        style.gpu_axis(axes, rows)
        axes.set_gid(style.tag(experiment))
        if experiment == experiments[0]:
            axes.set_title(heading)
        if experiment != experiments[-1]:
            axes.set_xlabel("")
        style.label_rows([axes], experiment)
    ends = [name for column in PRODUCTS for name in (column, f"{column}_hi")]
    panels[0].set_ylim(0, max(1.08, 1.03 * float(scaling[ends].max().max())))
    panels[0].yaxis.set_major_formatter(style.PERCENT)
    combined = {"combined": style.line_handle(style.COMBINED)}
    style.legend(figure, series.section_handles(scaling) | combined, scaling)
    return figure


@style.theme()
def wait_causes(scaling: pd.DataFrame) -> Figure | Note:
    """Wait over compute of each section, as stacked causes: imbalance, jitter, late start.

    The interval spans wait_lo / compute_hi to wait_hi / compute_lo: at least as wide as the ratio's own.
    """
    if scaling[list(WAIT_CAUSES.values())].isna().all(axis=None):
        return note("no_wait_causes")
    sections = scaling[scaling["section"] != TOTAL]
    shares = {cause: sections[column] / sections["compute_s"] for cause, column in WAIT_CAUSES.items()}
    heights = sections.assign(
        **shares,
        value=sections["wait_s"] / sections["compute_s"],
        value_lo=sections["wait_s_lo"] / sections["compute_s_hi"],
        value_hi=sections["wait_s_hi"] / sections["compute_s_lo"],
    )
    figure = bars.stacks(heights, style.CAUSE_LOOKS, "value", wording.percent, by=("experiment", "section"))
    style.label_rows(figure.axes, "wait over compute")
    for axes in figure.axes:
        axes.yaxis.set_major_formatter(style.PERCENT)
    style.legend(figure, bars.handles(style.CAUSE_LOOKS), scaling)
    return figure
