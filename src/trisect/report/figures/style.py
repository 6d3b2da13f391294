"""How every figure looks: colours, markers, axes; and how a data point is drawn."""

import json
import math
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import matplotlib
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from trisect import wording
from trisect.results.tables import TOTAL

LineStyle = Any
"""A matplotlib line style: a name or a dash sequence."""

TAG = "tag:"
"""First characters of the ids that `tag` makes."""

WIDTH_IN = 9.0
MOST_LABELS = 7
MARK_SIZE = 5.5
INK = "#1f2933"
MUTED = "#5a6672"

# Told apart with any colour vision, and from the colours of parts and causes; markers tell them apart in grey.
_SECTION_COLOURS = ("#00806f", "#b3203f", "#1f8fc4", "#c2479b", "#8c5a3c", "#444444")
_SECTION_MARKERS = ("o", "s", "^", "v", "P", "X")
_PLACED = ("gradient", "denoiser", "forward", "backward")
_LINES = {"2d": ("-", "-.", (0, (7, 1, 1, 1, 1, 1))), "3d": ("--", ":", (0, (1, 2)))}

theme = partial(matplotlib.rc_context, fname=Path(__file__).with_name("trisect.mplstyle"))
"""Every figure is drawn and saved inside this; also a decorator."""


@dataclass(frozen=True)
class Look:
    """How one series is drawn."""

    colour: str
    marker: str = "o"
    line: LineStyle = "-"
    width: float = 1.4
    hatch: str = ""


PART_LOOKS = {
    "compute": Look("#2f5575"),
    "transfer": Look("#e69f00", hatch="////"),
    "wait": Look("#b9c4ce"),
}
"""The three parts of a section; dark, middle and light, so that grey print keeps them apart."""

PART_LINES = {
    "compute": Look(PART_LOOKS["compute"].colour),
    "transfer": Look("#b36b00", "s", (0, (5, 1.5))),
    "wait": Look("#6b7784", "^", (0, (1, 1))),
}
"""The same as lines, which have less ink: darker."""

CAUSE_LOOKS = {
    "imbalance": Look("#2f5a1c"),
    "jitter": Look("#79ab5f", hatch="////"),
    "late start": Look("#cbe3b0"),
}
"""The causes of wait: a hue of their own, dark to light as the parts are."""

IDEAL = Look(INK, "", (0, (4, 2)), 1.0)
"""What perfect scaling would be."""

PERCENT = FuncFormatter(lambda value, _: f"{100 * value:g} %")

COMBINED = Look(INK, marker="D", line="-", width=2.2)


def experiments_of(scaling: pd.DataFrame) -> list[str]:
    """Experiments, in the table's order."""
    return list(scaling["experiment"].unique())


def sections_of(rows: pd.DataFrame) -> list[str]:
    """Sections, in the table's order, without the row that sums them."""
    return [name for name in rows["section"].unique() if name != TOTAL]


def families_of(scaling: pd.DataFrame) -> dict[tuple[str, ...], list[str]]:
    """Experiments that share their sections, such as all inference: they share a panel."""
    families: dict[tuple[str, ...], list[str]] = {}
    for name, rows in scaling.groupby("experiment", sort=False):
        families.setdefault(tuple(sorted(sections_of(rows))), []).append(str(name))
    return families


def section_looks(scaling: pd.DataFrame) -> dict[str, Look]:
    """One colour and marker per section, the same in every figure, and the look of the combined series.

    The sections of our own problems have a place of their own, also in a table that lacks some of them.
    """
    names = sections_of(scaling)
    others = [name for name in names if name not in _PLACED]
    places = {name: _PLACED.index(name) if name in _PLACED else len(_PLACED) + others.index(name) for name in names}
    if not set(names) & set(_PLACED):
        places = {name: place for place, name in enumerate(names)}
    kinds = len(_SECTION_COLOURS)
    looks = {name: Look(_SECTION_COLOURS[i % kinds], _SECTION_MARKERS[i % kinds]) for name, i in places.items()}
    return looks | {TOTAL: COMBINED}


def experiment_lines(experiments: Iterable[str]) -> dict[str, LineStyle]:
    """A line style per experiment of one panel: 2D solid, 3D dashed, further ones by other dashes."""
    used = {"2d": 0, "3d": 0}
    lines: dict[str, LineStyle] = {}
    for name in experiments:
        kind = "3d" if "3d" in name.lower() else "2d"
        lines[name] = _LINES[kind][used[kind] % len(_LINES[kind])]
        used[kind] += 1
    return lines


def panels(
    count: int, columns: int, height_in: float, *, sharey: Literal["all", "row", "none"] = "none"
) -> tuple[Figure, list[Axes]]:
    """A figure with `count` axes, filled row by row."""
    columns = min(count, columns)
    rows = math.ceil(count / columns)
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08, wspace=0.03)
    figure = Figure(figsize=(WIDTH_IN, height_in * rows + 0.45), layout=layout)
    grid = figure.subplots(rows, columns, squeeze=False, sharey=sharey)
    axes = list(grid.flat)
    for spare in axes[count:]:
        spare.remove()
    return figure, axes[:count]


def gpu_axis(axes: Axes, rows: pd.DataFrame) -> None:
    """A log2 axis with a tick at each count in `rows`; of more than MOST_LABELS, from the largest, some are named."""
    ticks = sorted(set(rows["gpus"]))
    step = math.ceil(len(ticks) / MOST_LABELS)
    axes.set_xscale("log", base=2)
    axes.set_xlim(ticks[0] / 1.25, ticks[-1] * 1.25)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels(["" if place % step else str(tick) for place, tick in enumerate(reversed(ticks))][::-1])
    axes.set_xlabel(f"{unit_of(rows)}s")


def unit_of(rows: pd.DataFrame) -> str:
    """What is counted, in the singular: the column `unit` that `figures.draw` adds, or GPU."""
    return str(rows["unit"].iloc[0]) if "unit" in rows else "GPU"


def title(axes: Axes, *texts: str) -> None:
    """A panel's title, a line per text; a long one breaks into lines rather than run into the next panel."""
    spec = axes.get_subplotspec()
    columns = spec.get_gridspec().ncols if spec else 1
    axes.set_title("\n".join(textwrap.fill(text, 88 // columns) for text in texts))


def label_rows(panels: Iterable[Axes], *lines: str) -> None:
    """Name the vertical axis, once a row."""
    for axes in panels:
        spec = axes.get_subplotspec()
        if spec is None or spec.is_first_col():
            axes.set_ylabel("\n".join(textwrap.fill(line, 40) for line in lines))


def of_experiment(axes: Axes, experiment: str, *section: str) -> None:
    """Make a panel that of one experiment, or of one section: its title, and what the page switches on and off."""
    title(axes, experiment, *section)
    axes.set_gid(tag(experiment, *section))


def note(axes: Axes, text: str) -> None:
    """A remark at the top right of a panel."""
    axes.set_title(text, loc="right", fontsize=8, fontweight="normal", color=MUTED)


def tag(experiment: str, section: str = "", hover: str = "") -> str:
    """The id of an artist: `svg.annotate` turns it into what the page switches on and off and shows on hover."""
    return TAG + quote(json.dumps([experiment, section, hover]))


def draw_series(axes: Axes, points: pd.DataFrame, look: Look, size: float = MARK_SIZE) -> None:
    """One series: a line, its intervals, and one marker per point, hollow where oversubscribed.

    Args:
        points: one row per GPU count: experiment, section, gpus, value, lo, hi, oversubscribed, hover; NaN is skipped.
        size: of the markers, in points.
    """
    points = points.dropna(subset=["value"]).sort_values("gpus")
    if points.empty:
        return
    untitled = tag(points["experiment"].iloc[0], points["section"].iloc[0])
    line: dict[str, Any] = {"color": look.colour, "linestyle": look.line, "linewidth": look.width}
    sns.lineplot(data=points, x="gpus", y="value", ax=axes, errorbar=None, legend=False, **line)
    axes.lines[-1].set_gid(untitled)
    axes.set_ylabel("")
    draw_marks(axes, points.assign(marker=look.marker), look.colour, size)


def draw_marks(axes: Axes, points: pd.DataFrame, colour: str, size: float = MARK_SIZE) -> None:
    """The intervals and markers of `draw_series`, each point with a `marker` of its own; `at`, if given, is its x."""
    style: dict[str, Any] = {"color": colour, "markersize": size, "markeredgewidth": 1.2, "linestyle": "none"}
    for point in points.to_dict("records"):
        x = point.get("at", point["gpus"])
        if not math.isnan(point["lo"]) and not math.isnan(point["hi"]):
            untitled = tag(point["experiment"], point["section"])
            axes.vlines(x, point["lo"], point["hi"], color=colour, linewidth=1.0, gid=untitled)
        style |= {"markerfacecolor": "white" if point["oversubscribed"] else colour, "marker": point["marker"]}
        axes.plot(x, point["value"], zorder=3, gid=tag(point["experiment"], point["section"], point["hover"]), **style)


def legend(figure: Figure, handles: Mapping[str, Line2D | Patch], scaling: pd.DataFrame) -> None:
    """One legend below the panels; it explains hollow points where there are any."""
    if scaling["oversubscribed"].any():
        hollow = Line2D([], [], color=INK, marker="o", markerfacecolor="white", markersize=MARK_SIZE, linestyle="none")
        handles = {**handles, "hollow: oversubscribed, more ranks than cores": hollow}
    columns = len(handles) if len(handles) <= 5 else math.ceil(len(handles) / 2)
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=columns, handlelength=2.4)


def line_handle(look: Look, *, marker: bool = True) -> Line2D:
    """A legend entry for a series."""
    shown = look if marker else replace(look, marker="")
    return Line2D([], [], color=shown.colour, marker=shown.marker, linestyle=shown.line, linewidth=shown.width)


def where(row: Mapping[Any, Any]) -> str:
    """Which run and section a row is about, for hover text."""
    section = "all sections" if row["section"] == TOTAL else row["section"]
    return f"{row['experiment']}, {section}, {wording.counts([row['gpus']], row.get('unit', 'GPU'))}"


def flag(row: Mapping[Any, Any]) -> str:
    """What hover text adds to an oversubscribed row."""
    return ", oversubscribed" if row["oversubscribed"] else ""


def valued(point: Mapping[Any, Any], form: wording.Form) -> str:
    """`value`, and its interval from `lo` to `hi` where there is one."""
    spread = form.interval(point["value"], point["lo"], point["hi"])
    return form(point["value"]) + (f" ({spread})" if spread else "")
