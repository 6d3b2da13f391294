"""Compute of every rank in every iteration, as colours: who is late, always or by chance."""

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from trisect import wording
from trisect.report.figures import style

RANK_CELLS = ["experiment", "gpus", "oversubscribed", "rank", "iteration", "section", "compute_s"]
"""Columns that `rank_compute` reads: one row per rank, iteration and section, of one count per experiment."""

COLOURS = matplotlib.colormaps["BrBG_r"].resampled(33)
"""Two hues that any colour vision tells apart, brown for late, and pale where a rank is at the mean. An odd number of
steps, so that one is the middle, and few enough for the colour bar to be drawn as shapes rather than a picture."""

MEAN = 1.0
"""What the middle of the scale stands for: compute over its section's mean."""

LEAST_REACH, MOST_REACH = 0.05, 1.0
"""How far the scale goes at least and at most, either way from MEAN."""

PANELS_A_ROW = 4


@style.theme()
def rank_compute(ranks: pd.DataFrame) -> Figure:
    """Compute over the section's mean; a panel per experiment and section, a row per rank, a column per iteration."""
    mean = ranks.groupby(["experiment", "section"])["compute_s"].transform("mean")
    cells = ranks.assign(relative=(ranks["compute_s"] / mean).fillna(1))  # a section without compute: all alike
    reach = min(max((cells["relative"] - MEAN).abs().max(), LEAST_REACH), MOST_REACH)
    norm = Normalize(MEAN - reach, MEAN + reach)
    groups = list(cells.groupby(["experiment", "section"], sort=False))
    tallest = int(cells["rank"].nunique())
    figure, panels = style.panels(len(groups), PANELS_A_ROW, 2.1 if tallest <= 8 else 3.0)
    for axes, ((experiment, section), rows) in zip(panels, groups, strict=True):
        _panel(axes, rows, norm)
        axes.set_gid(style.tag(str(experiment), str(section)))
    above = cells["relative"].max() > MEAN + MOST_REACH
    colours = ScalarMappable(norm, COLOURS)
    bar = figure.colorbar(colours, ax=panels, fraction=0.02, pad=0.015, extend="max" if above else "neither")
    bar.set_label("compute over the section's mean")
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    bar.outline.set_visible(False)
    return figure


def _panel(axes: Axes, rows: pd.DataFrame, norm: Normalize) -> None:
    values = rows.pivot(index="rank", columns="iteration", values="relative").sort_index()
    first = rows.iloc[0].to_dict()
    run, flag = style.where(first), style.flag(first)
    seconds = rows.groupby("rank")["compute_s"].mean()
    edges = [place - 0.5 for place in range(values.shape[1] + 1)]
    for place, (rank, mean) in enumerate(seconds.items()):
        of_rank = values.iloc[place]
        hover = f"{run}: rank {rank} computes {wording.seconds(mean)} per iteration, {_range(of_rank)}{flag}"
        axes.pcolormesh(
            edges,
            [place - 0.5, place + 0.5],
            of_rank.to_numpy()[None, :],
            norm=norm,
            cmap=COLOURS,
            edgecolor="face",  # no pale seams between cells
            linewidth=0.4,
            clip_on=False,
            gid=style.tag(first["experiment"], first["section"], hover),
        )
    names = [str(name) for name in values.columns]
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: names[round(x)] if 0 <= round(x) < len(names) else ""))
    axes.yaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.grid(False)
    axes.invert_yaxis()
    axes.set_xlabel(f"iteration\n{_slowest(values)}")
    style.title(axes, f"{first['experiment']} at {first['gpus']}{flag}", str(first["section"]))
    style.label_rows([axes], "rank")


def _range(of_rank: pd.Series) -> str:
    return f"{wording.digits(of_rank.min(), 2)} to {wording.digits(of_rank.max(), 2)} times the section's mean"


def _slowest(values: pd.DataFrame) -> str:
    """Which rank is the slowest most often, and how often; `values` has a row a rank and a column an iteration."""
    if len(values) < 2:
        return "one rank"
    counts = values.idxmax().value_counts().sort_index()
    return f"slowest: rank {counts.idxmax()} in {counts.max()} of {values.shape[1]}"
