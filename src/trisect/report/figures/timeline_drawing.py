"""The slowest and the median iteration of a run, drawn: a row per rank, compute, wait and transfer along it."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline

from trisect import wording
from trisect.analysis.timeline import COMPUTE, TRANSFER, WAIT, Timeline
from trisect.report.figures import bars, style, svg

KINDS = (COMPUTE, TRANSFER, WAIT)

MOST_RANKS = 16
"""Rows drawn: of more ranks, those spread evenly, and those that wait least and most. The file holds all."""

MOST_PIECES = 2_000
"""In a panel; of more, each bin of the width shows what took most of it."""

BINS = 300

WIDE = 0.06
"""Share of the width from which a section's name fits above it."""


def draw(timeline: Timeline, experiment: str, gpus: int) -> str:
    """The drawing as an SVG document; the same timeline gives the same bytes."""
    return svg.render(figure(timeline, experiment, gpus))


@style.theme()
def figure(timeline: Timeline, experiment: str, gpus: int) -> Figure:
    """A panel for the slowest iteration and one for the median, on one scale; a single iteration is drawn once."""
    shown = list(dict.fromkeys((timeline.slowest, timeline.median)))
    ranks = _ranks(timeline.pieces)
    row_in = 0.3 if len(ranks) <= 4 else 0.16
    made, panels = style.panels(len(shown), 1, row_in * len(ranks) + 0.8)
    end = timeline.sections["end_s"].max()
    factor, unit = wording.time_unit(end)
    for axes, iteration in zip(panels, shown, strict=True):
        spans = _of(timeline.sections, iteration, ranks, factor)
        _panel(axes, spans, _of(timeline.pieces, iteration, ranks, factor), end * factor, experiment)
        kind = "slowest" if iteration == timeline.slowest else "median"
        took = wording.seconds((spans["end_s"].max() - spans["start_s"].min()) / factor)
        style.title(axes, f"{kind} iteration ({iteration}) of {experiment} at {gpus}: {took}")
        axes.set_yticks(range(len(ranks)), [str(rank) for rank in ranks])
        axes.set_ylabel("rank")
        axes.set_ylim(len(ranks) - 0.4, -0.6 - 0.15 / row_in)  # the names of sections take 0.15 in
    panels[-1].set_xlabel(f"{unit} since the iteration began{_agreement(timeline.residual_s)}")
    handles = bars.handles({kind: replace(style.PART_LOOKS[kind], hatch="") for kind in KINDS})
    made.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=len(handles))
    return made


def _agreement(residual_s: float) -> str:
    return "" if np.isnan(residual_s) else f"; the ranks' clocks agree within {wording.seconds(residual_s)}"


def _ranks(pieces: pd.DataFrame) -> list[int]:
    """The ranks to draw, at most MOST_RANKS."""
    ranks = np.sort(pieces["rank"].unique())
    if len(ranks) <= MOST_RANKS:
        return ranks.tolist()
    waits = pieces.assign(wait=(pieces["end_s"] - pieces["start_s"]).where(pieces["kind"] == WAIT, 0.0))
    total = waits.groupby("rank")["wait"].sum()
    even = ranks[np.linspace(0, len(ranks) - 1, MOST_RANKS - 2).round().astype(int)]
    return sorted({*even.tolist(), total.idxmin(), total.idxmax()})


def _of(rows: pd.DataFrame, iteration: int, ranks: list[int], factor: float) -> pd.DataFrame:
    """Rows of one iteration in the unit drawn, with `place`, the row of the drawing."""
    chosen = rows[(rows["iteration"] == iteration) & rows["rank"].isin(ranks)]
    times = {name: chosen[name] * factor for name in ("start_s", "end_s")}
    return chosen.assign(**times, place=chosen["rank"].map(ranks.index))


def _panel(axes: Axes, spans: pd.DataFrame, pieces: pd.DataFrame, end: float, experiment: str) -> None:
    drawn = pieces if len(pieces) <= MOST_PIECES else coarse(pieces, end)
    for row in _shares(pieces).to_dict("records"):
        mine = drawn[(drawn["place"] == row["place"]) & (drawn["kind"] == row["kind"])]
        hover = f"{experiment}, rank {row['rank']}: {row['kind']} {wording.percent(row['share'])} of its sections"
        outline = _rectangles(mine["start_s"].to_numpy(), mine["end_s"].to_numpy(), row["place"])
        colour = style.PART_LOOKS[row["kind"]].colour
        axes.add_patch(PathPatch(outline, facecolor=colour, linewidth=0, gid=style.tag(experiment, "", hover)))
    axes.vlines(spans["start_s"], spans["place"] - 0.46, spans["place"] + 0.46, color="white", linewidth=1.2)
    _name_sections(axes, spans, end)
    axes.set_xlim(0, end)
    axes.grid(False)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _shares(pieces: pd.DataFrame) -> pd.DataFrame:
    """What each rank spends on each kind: place, rank, kind, share of its sections."""
    took = pieces.assign(took=pieces["end_s"] - pieces["start_s"])
    shares = took.groupby(["place", "rank", "kind"], as_index=False)["took"].sum()
    return shares.assign(share=shares["took"] / shares.groupby("rank")["took"].transform("sum"))


def _name_sections(axes: Axes, spans: pd.DataFrame, end: float) -> None:
    """A section's name above its first occurrence, where there is room."""
    of_rank = spans[spans["place"] == 0].drop_duplicates("section")
    for row in of_rank.to_dict("records"):
        if row["end_s"] - row["start_s"] >= WIDE * end:
            axes.text(row["start_s"], -0.55, str(row["section"]), fontsize=8, color=style.MUTED, va="bottom")


def _rectangles(starts: np.ndarray, ends: np.ndarray, place: float) -> Outline:
    """All rectangles of a row as one outline."""
    sides = (place - 0.4, place - 0.4, place + 0.4, place + 0.4, place - 0.4)
    corners = [(x, y) for s, e in zip(starts, ends, strict=True) for x, y in zip((s, e, e, s, s), sides, strict=True)]
    codes = [Outline.MOVETO, Outline.LINETO, Outline.LINETO, Outline.LINETO, Outline.CLOSEPOLY]
    return Outline(np.reshape(corners, (-1, 2)), codes * len(starts))


def coarse(pieces: pd.DataFrame, end: float) -> pd.DataFrame:
    """Pieces too fine to be seen, merged: each of BINS parts of the width shows the kind that took most of it."""
    edges = np.linspace(0, end, BINS + 1)
    rows = []
    for (place, rank), mine in pieces.groupby(["place", "rank"]):
        inside = np.array([_time_before(edges, mine[mine["kind"] == kind]) for kind in KINDS])
        spent = np.diff(inside, axis=1)
        most = np.where(spent.sum(axis=0) < end / BINS / 2, -1, spent.argmax(axis=0))
        bounds = np.flatnonzero(np.diff(most, prepend=-2, append=-2))
        for first, past in pairwise(bounds):
            if most[first] >= 0:
                rows.append((place, rank, KINDS[most[first]], edges[first], edges[past]))
    return pd.DataFrame(rows, columns=["place", "rank", "kind", "start_s", "end_s"])


def _time_before(edges: np.ndarray, rows: pd.DataFrame) -> np.ndarray:
    """How much of the pieces lies before each edge."""
    starts, ends = rows["start_s"].to_numpy()[:, None], rows["end_s"].to_numpy()[:, None]
    return (np.clip(edges, starts, ends) - starts).sum(axis=0)
