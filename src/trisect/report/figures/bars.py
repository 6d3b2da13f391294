"""Stacked bars: a panel per experiment, a bar per GPU count."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from trisect import wording
from trisect.report.figures import style

OUTLIER = 4.0
"""A bar so many times as tall as the next is cut on a shared scale, lest it flatten the others, and says so."""

HEADROOM = 1.14
"""Height of a panel over its tallest bar, so that the bar's value has room."""


def stacks(
    rows: pd.DataFrame,
    parts: dict[str, style.Look],
    whole: str,
    form: wording.Form = wording.times,
    *,
    by: Sequence[str] = ("experiment",),
) -> Figure:
    """A panel per experiment, a bar per count: columns `parts` stacked, the interval of column `whole` on top.

    Panels by experiment and section have scales of their own, for sections differ by orders of magnitude. A bar that
    leaves its panel carries an arrow and its value.
    """
    groups = list(rows.groupby(list(by), sort=False))
    shared = len(by) == 1
    figure, panels = style.panels(len(groups), 4, 2.7, sharey="all" if shared else "none")
    for axes, (names, of_panel) in zip(panels, groups, strict=True):
        counts = of_panel.sort_values("gpus").reset_index(drop=True)
        top = _top((rows if shared else counts)[[whole, f"{whole}_hi"]].max(axis=1), cut=shared)
        for place, bar in enumerate(counts.to_dict("records")):
            _stack(axes, place, bar, parts, form)
        known = counts.dropna(subset=[f"{whole}_lo", f"{whole}_hi"])
        for colour, width in (("white", 2.6), (style.INK, 1.1)):  # white around it, so that it shows on dark bars
            ends = known[f"{whole}_lo"], known[f"{whole}_hi"]
            axes.vlines(known.index, *ends, color=colour, linewidth=width, zorder=4)
        _name_values(axes, counts, whole, top, form)
        axes.set_xticks(counts.index, [str(count) for count in counts["gpus"]])
        axes.set_xlim(-0.7, max(len(counts), 3) - 0.3)
        axes.set_xlabel(f"{style.unit_of(rows)}s")
        style.of_experiment(axes, *map(str, names))
        axes.set_ylim(0, HEADROOM * top)
    return figure


def _top(heights: pd.Series, *, cut: bool) -> float:
    """What the scale has to reach: the tallest bar, or the next where the tallest is an OUTLIER."""
    tallest = sorted(heights.dropna())[-2:] or [1.0]
    return float(tallest[0] if cut and tallest[-1] > OUTLIER * tallest[0] > 0 else tallest[-1]) or 1.0


def _name_values(axes: Axes, counts: pd.DataFrame, whole: str, top: float, form: wording.Form) -> None:
    """The value above each of a few bars, or above the last of many; and of every bar that leaves the panel."""
    for place, bar in enumerate(counts.to_dict("records")):
        end = np.fmax(bar[whole], bar[f"{whole}_hi"])
        at: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": 8, "zorder": 5}
        if bar[whole] > HEADROOM * top:
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
            axes.annotate(f"\u2191 {form(bar[whole])}", (place, HEADROOM * top), (0, -2), va="top", bbox=box, **at)
        elif not math.isnan(end) and (len(counts) <= 4 or place == len(counts) - 1):
            axes.annotate(form(bar[whole]), (place, end), (0, 2), va="bottom", **at)


def _stack(axes: Axes, place: int, bar: Mapping[Any, Any], parts: dict[str, style.Look], form: wording.Form) -> None:
    bottom = 0.0
    for part, look in parts.items():
        if math.isnan(bar[part]):
            continue
        hollow = bool(bar["oversubscribed"])
        hover = f"{style.where(bar)}: {part} {form(bar[part])}{style.flag(bar)}"
        axes.bar(
            place,
            bar[part],
            0.72,
            bottom,
            facecolor="white" if hollow else look.colour,
            edgecolor=look.colour if hollow else "white",
            linewidth=1.2 if hollow else 0.4,
            hatch=look.hatch,
            gid=style.tag(bar["experiment"], bar["section"], hover),
        )
        bottom += bar[part]


def handles(parts: dict[str, style.Look]) -> dict[str, Patch]:
    """Legend entries of stacked parts."""
    return {
        name: Patch(facecolor=look.colour, edgecolor="white", hatch=look.hatch, linewidth=0.4)
        for name, look in parts.items()
    }
