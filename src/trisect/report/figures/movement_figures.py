"""Data movement, what transfer is made of and at which rate: from tables.RATES of all experiments to a figure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trisect import wording
from trisect.network.byte_rules import RING, TREE
from trisect.report.figures import series, style
from trisect.results.notes import Note, note
from trisect.wording import gb_per_s

ALGORITHMS: dict[str, str] = {RING: "o", TREE: "^"}
"""Markers of known algorithms."""

ASSUMED_MARKERS: dict[str, str] = {RING: "s", TREE: "D"}
"""Markers where the algorithm is not known, by the one whose bytes are taken."""

OTHER = "s"
"""Marker of a transfer by an unknown or another algorithm."""

ROUTES = {"inside": "inside a node", "between": "between nodes"}

SECTION_LINES: tuple[style.LineStyle, ...] = ("-", (0, (4, 2)), (0, (1, 1.2)), "-.")
"""Of sections, here where markers tell algorithms apart."""

APART = 1.07
"""Factor between the places of two sections' points at one count: their transfers are often the same."""

SOURCES = {"machine": "machine's file", "probed": "probe", "fitted": "smallest count", "": "none to compare with"}


@style.theme()
def transfer_bytes(rates: pd.DataFrame) -> Figure | Note:
    """Measured transfer as points, a marker per algorithm; as lines, the bytes of that algorithm over one rate."""
    looks = _looks(rates)
    groups = list(rates.groupby("experiment", sort=False))
    if not any(expected_rate(rows)[1] for _, rows in groups):
        return note("no_rate_to_compare")
    figure, panels = style.panels(len(groups), 4, 2.7, sharey="all")
    for axes, (experiment, rows) in zip(panels, groups, strict=True):
        rate, source = expected_rate(rows)
        table = rows.assign(expected_s=rows["sent_bytes"] / (rate * 1e9), source=SOURCES[source])
        for section, of_section in table.groupby("section", sort=False):
            _expected_lines(axes, of_section, looks[str(section)])
            style.draw_marks(axes, _transfers(of_section, list(looks)), looks[str(section)].colour)
        series.log_seconds(axes, rows)
        style.of_experiment(axes, str(experiment))
        axes.set_xlabel(f"{style.unit_of(rows)}s\nrate: {SOURCES[source]}")
    style.label_rows(panels, "transfer, s per iteration")
    lines = {name: style.line_handle(look, marker=False) for name, look in looks.items()}
    marks = {how: _mark(marker) for how, marker in ALGORITHMS.items() if (rates["algorithm"] == how).any()}
    other = ~rates["algorithm"].isin(list(ALGORITHMS))
    others = wording.listed(sorted(rates.loc[other, "algorithm"].unique()))
    style.legend(figure, lines | marks | ({others: _mark(OTHER)} if others else {}), rates)
    return figure


def expected_rate(rows: pd.DataFrame) -> tuple[pd.Series, str]:
    """The rate that an experiment's transfers are held against, by row of tables.RATES, and its key of SOURCES.

    The machine's where it has one for every row; else what was probed; else the one fitted at the smallest count of a
    route, where others are left to hold it against.
    """
    if rows["machine_gb_per_s"].notna().all():
        return rows["machine_gb_per_s"], "machine"
    if rows["probed_gb_per_s"].notna().any():
        return rows["probed_gb_per_s"], "probed"
    if (rows["gpus"] != rows["fitted_at"]).any():
        return rows["gb_per_s"] * (1 + rows["off"]), "fitted"
    return pd.Series(float("nan"), rows.index), ""


def _expected_lines(axes: Axes, rows: pd.DataFrame, look: style.Look) -> None:
    """One line where every algorithm is known; else one by each assumed algorithm, the tree's thin."""
    known = rows["algorithm"] == rows["reading"]
    for reading, width in ((RING, look.width), (TREE, look.width / 2)):
        line = rows[known | (rows["reading"] == reading)].dropna(subset=["expected_s"]).sort_values("gpus")
        if line.empty:
            return
        gid = style.tag(rows["experiment"].iloc[0], rows["section"].iloc[0])
        axes.plot(line["gpus"], line["expected_s"], color=look.colour, linestyle=look.line, linewidth=width, gid=gid)
        if known.all():
            return


def _transfers(rows: pd.DataFrame, sections: list[str]) -> pd.DataFrame:
    """Points of `style.draw_marks`: the measured transfers of one section."""
    points = rows.drop_duplicates("gpus")
    place = sections.index(str(rows["section"].iloc[0])) - (len(sections) - 1) / 2
    scale = points["sent_bytes"] / 1e9
    points = points.assign(
        value=points["transfer_s"],
        lo=scale / points["gb_per_s_hi"],
        hi=scale / points["gb_per_s_lo"],
        at=points["gpus"] * APART**place,
        marker=[ALGORITHMS.get(how, OTHER) for how in points["algorithm"]],
        alike=True,  # the time is the same however it is read
    )
    return points.assign(hover=[_transfer_hover(row) for row in points.to_dict("records")])


def _transfer_hover(row: Mapping[Any, Any]) -> str:
    said = f"{style.where(row)}: transfer {style.valued(row, wording.seconds)}"
    if pd.notna(row["expected_s"]):
        said += f", {wording.size(row['sent_bytes'])} at the rate of the {row['source']}: "
        said += wording.seconds(row["expected_s"])
    return f"{said}; {_by(row)}, {row['iterations']} iterations{style.flag(row)}"


@style.theme()
def implied_rate(rates: pd.DataFrame) -> Figure:
    """Bytes over measured transfer by route, as points; short lines are the machine's and the probed rate."""
    looks = _looks(rates)
    rates = rates.assign(alike=_alike(rates))
    groups = [
        (str(experiment), route, rows[rows["route"] == route])
        for route in ROUTES
        for experiment, rows in rates.groupby("experiment", sort=False)
        if (rows["route"] == route).any()
    ]
    figure, panels = style.panels(len(groups), 4, 2.6)
    for axes, (experiment, route, rows) in zip(panels, groups, strict=True):
        for section, of_section in rows.groupby("section", sort=False):
            style.draw_marks(axes, _rates(of_section, list(looks)), looks[str(section)].colour)
        for column, (words, look) in REFERENCES.items():
            _reference(axes, rows, column, words, look)
        style.gpu_axis(axes, rows)
        tallest = rows[["gb_per_s", "gb_per_s_hi", *REFERENCES]].replace(np.inf, np.nan).max().max()
        axes.set_ylim(0, 1.12 * tallest)
        style.title(axes, experiment, ROUTES[route])
        axes.set_gid(style.tag(experiment))
    style.label_rows(panels, "implied rate, GB/s")
    style.legend(figure, _rate_legend(rates, looks), rates)
    return figure


BEYOND_GB_PER_S = 1e6
"""Above any axis: there the interval is drawn to that has no upper end."""

REFERENCES = {
    "machine_gb_per_s": ("machine's file", style.Look(style.INK, line="-", width=1.6)),
    "probed_gb_per_s": ("probe", style.Look(style.MUTED, line=(0, (1.5, 1)), width=1.6)),
}
"""Rates to compare with: what each is called and how it is drawn."""


def _reference(axes: Axes, rows: pd.DataFrame, column: str, words: str, look: style.Look) -> None:
    """A short line at each count that has a rate to compare with."""
    known = rows.dropna(subset=[column]).drop_duplicates(["gpus", "reading"])
    for row in known.to_dict("records"):
        said = f"{row['experiment']}, {row['gpus']} {style.unit_of(rows)}s: {gb_per_s(row[column])} by the {words}"
        gid = style.tag(row["experiment"], "", f"{said}, as a {row['reading']}")
        ends = row["gpus"] / 1.22, row["gpus"] * 1.22
        axes.hlines(row[column], *ends, look.colour, look.line, linewidth=look.width, zorder=2.5, gid=gid)


def _rates(rows: pd.DataFrame, sections: list[str]) -> pd.DataFrame:
    """Points of `style.draw_marks`: the implied rates of one section, one where both algorithms send the same."""
    place = sections.index(str(rows["section"].iloc[0])) - (len(sections) - 1) / 2
    rows = rows.drop_duplicates(["gpus", "sent_bytes"])
    points = rows.assign(
        value=rows["gb_per_s"], lo=rows["gb_per_s_lo"], hi=rows["gb_per_s_hi"], at=rows["gpus"] * APART**place
    )
    markers = [
        (ALGORITHMS if how == as_ else ASSUMED_MARKERS)[as_]
        for how, as_ in zip(rows["algorithm"], rows["reading"], strict=True)
    ]
    hover = [
        f"{style.where(row)}: {style.valued(row, gb_per_s)} {ROUTES[row['route']]}, {_by(row)}, "
        f"{row['iterations']} iterations{style.flag(row)}"
        for row in points.to_dict("records")
    ]
    return points.assign(marker=markers, hover=hover, hi=points["hi"].replace(np.inf, BEYOND_GB_PER_S))


def _alike(rates: pd.DataFrame) -> pd.Series:
    """Whether a ring and a tree send the same at a row's count, as they do inside a node."""
    return rates.groupby(["experiment", "section", "gpus"])["sent_bytes"].transform("nunique") == 1


def _by(row: Mapping[Any, Any]) -> str:
    """The algorithm in words."""
    if row["algorithm"] == row["reading"]:
        return f"by {row['algorithm']}"
    return f"algorithm {row['algorithm']}" + ("" if row["alike"] else f", counted as a {row['reading']}")


def _rate_legend(rates: pd.DataFrame, looks: Mapping[str, style.Look]) -> dict[str, Any]:
    colours = {name: style.line_handle(replace(look, line="none", marker="o")) for name, look in looks.items()}
    known = rates["algorithm"] == rates["reading"]
    marks = {how: _mark(marker) for how, marker in ALGORITHMS.items() if (rates[known]["reading"] == how).any()}
    if not known.all() and rates["alike"].all():
        marks |= {"unknown, either way": _mark(ASSUMED_MARKERS[RING])}
    elif not known.all():
        marks |= {f"unknown, as a {how}": _mark(marker) for how, marker in ASSUMED_MARKERS.items()}
    used = [shown for column, shown in REFERENCES.items() if rates[column].notna().any()]
    return colours | marks | {words: style.line_handle(look, marker=False) for words, look in used}


def _looks(rates: pd.DataFrame) -> dict[str, style.Look]:
    looks = style.section_looks(rates)
    return {
        name: replace(looks[name], line=SECTION_LINES[i % len(SECTION_LINES)])
        for i, name in enumerate(style.sections_of(rates))
    }


def _mark(marker: str) -> Any:
    return style.line_handle(style.Look(style.MUTED, marker=marker, line="none"))
