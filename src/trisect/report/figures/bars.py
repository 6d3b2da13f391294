"""Stacked bars: a panel per experiment, a bar per GPU count."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from trisect import wording
from trisect.report.figures import style


def stacks(
    rows: pd.DataFrame,
    parts: dict[str, style.Look],
    whole: str,
    form: wording.Form = wording.times,
    *,
    by: Sequence[str] = ("experiment",),
) -> Figure:
    """A panel per experiment, a bar per count: columns `parts` stacked, the interval of column `whole` on top.

    Panels by experiment and section have scales of their own, for sections differ by orders of magnitude.
    """
    groups = list(rows.groupby(list(by), sort=False))
    figure, panels = style.panels(len(groups), 4, 2.7, sharey="all" if len(by) == 1 else "none")
    for axes, (names, of_panel) in zip(panels, groups, strict=True):
        counts = of_panel.sort_values("gpus").reset_index(drop=True)
        for place, bar in enumerate(counts.to_dict("records")):
            _stack(axes, place, bar, parts, form)
        known = counts.dropna(subset=[f"{whole}_lo", f"{whole}_hi"])
        axes.vlines(known.index, known[f"{whole}_lo"], known[f"{whole}_hi"], color=style.INK, linewidth=1.1, zorder=4)
        for place in range(len(counts)) if len(counts) <= 4 else [len(counts) - 1]:
            top = counts.loc[place, [whole, f"{whole}_hi"]].max()
            above: dict[str, Any] = {"xytext": (0, 2), "textcoords": "offset points", "ha": "center", "va": "bottom"}
            axes.annotate(form(counts[whole][place]), (place, top), fontsize=8, **above)
        axes.set_xticks(counts.index, [str(count) for count in counts["gpus"]])
        axes.set_xlim(-0.7, max(len(counts), 3) - 0.3)
        axes.set_xlabel(f"{style.unit_of(rows)}s")
        style.of_experiment(axes, *map(str, names))
        axes.margins(y=0.1)
        axes.set_ylim(bottom=0)
    return figure


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
