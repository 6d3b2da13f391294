"""A reconstruction: truth, one measurement and result beside each other, and PSNR by iteration below them."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from trisect import wording
from trisect.report.figures import style, svg
from trisect.results.record import Quality

Pictures = Mapping[str, np.ndarray]
"""Bytes by name, of shape (rows, columns), or (rows, columns, 3) in colour."""

PICTURE_TITLES = {"truth": "truth", "measurement": "one measurement", "result": "result"}
"""Of the pictures, in the order in which they are drawn."""

PICTURE_IN, PSNR_IN = 2.8, 2.2
WORDS_IN = {"pictures": 0.5, "psnr": 1.0}
"""Height of the titles, the axis' words and the legend, beside that of what is drawn."""

TALLEST = 1.5
"""Height over width up to which a picture has the whole width of its panel."""

SMALL = 300
"""Pixels along an axis up to which each is drawn as a square; a larger picture has more than the page gives it."""

MOST_MARKS = 40
"""Of a series; of more iterations, some that are spread evenly have a mark."""

# Drawn in this order, broad to narrow, and with marks of three sizes: where they lie on each other, all are seen.
ONE_PROCESS = style.Look("#cfc3e6", "s", "-", 7.0)
TOGETHER = style.Look("#4b2e83", "o", "-", 2.2)
UNTILED_LINE = style.Look("#ff8c2b", "x", (0, (1.5, 2.5)), 1.6)
_MARK_IN_PT = {ONE_PROCESS: 12.0, TOGETHER: 7.0, UNTILED_LINE: 4.5}

_IMAGE = re.compile(r"<image\b[^>]*>")
_SIDES = re.compile(r' (?:width|height)="(\d+)')
_SQUARES = ' style="image-rendering:crisp-edges;image-rendering:pixelated"'


def has_trajectory(quality: Quality) -> bool:
    """Whether PSNR by iteration is a line worth drawing: two values are said, not drawn."""
    return len(quality.psnr_db) > 2


def draw(quality: Quality, pictures: Pictures, experiment: str, gpus: int, unit: str = "GPU") -> str:
    """The drawing as an SVG document; the same values and pictures give the same bytes.

    Args:
        quality: of the run that is shown.
        pictures: `truth`, `measurement` and `result`, or none.
        experiment: what the marks belong to.
        gpus: the count of that run.
        unit: what is counted, in the singular.

    Returns:
        "" where there are neither pictures nor a trajectory.
    """
    if not pictures and not has_trajectory(quality):
        return ""
    return _IMAGE.sub(_smooth_if_large, svg.render(figure(quality, pictures, experiment, gpus, unit)))


@style.theme()
def figure(quality: Quality, pictures: Pictures, experiment: str, gpus: int, unit: str = "GPU") -> Figure:
    """The same as a figure: a row of pictures if there are any, and below it PSNR if it is a trajectory."""
    named = {name: pictures[name] for name in PICTURE_TITLES if name in pictures}
    heights = {"pictures": _height_in(named), "psnr": PSNR_IN if has_trajectory(quality) else 0.0}
    rows = [name for name, height in heights.items() if height]
    words_in = sum(WORDS_IN[name] for name in rows)
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08, wspace=0.03, hspace=0.04)
    made = Figure(figsize=(style.WIDTH_IN, sum(heights.values()) + words_in), layout=layout)
    grid = made.add_gridspec(len(rows), max(1, len(named)), height_ratios=[heights[name] for name in rows])
    for place, (name, picture) in enumerate(named.items()):
        _picture(made.add_subplot(grid[0, place]), PICTURE_TITLES[name], picture)
    if "psnr" in rows:
        _psnr(made.add_subplot(grid[-1, :]), _series(quality, gpus, unit), experiment)
        handles, names = made.axes[-1].get_legend_handles_labels()
        made.legend(handles, names, loc="outside lower center", ncols=len(names), handlelength=4)
    return made


def _height_in(pictures: Pictures) -> float:
    return PICTURE_IN * min(TALLEST, max((shown.shape[0] / shown.shape[1] for shown in pictures.values()), default=0))


def _picture(axes: Axes, title: str, picture: np.ndarray) -> None:
    """Every pixel as it is: nothing is interpolated, and grey is from 0 to 255."""
    axes.imshow(picture, cmap="gray", vmin=0, vmax=255, interpolation="none")
    axes.set_anchor("NW")
    style.title(axes, title)
    rows, columns = picture.shape[:2]
    axes.set_xlabel(f"{columns} x {rows} pixels", loc="left", color=style.MUTED)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    axes.spines[:].set_visible(False)


def _series(quality: Quality, gpus: int, unit: str) -> dict[str, tuple[style.Look, Sequence[float]]]:
    """What is drawn, by its name in the legend, in the order of drawing."""
    series: dict[str, tuple[style.Look, Sequence[float]]] = {
        "one process, same tiles": (ONE_PROCESS, quality.single_psnr_db),
        f"{wording.counted(gpus, unit)} together": (TOGETHER, quality.psnr_db),
    }
    if quality.untiled_psnr_db:
        series["one process, untiled"] = (UNTILED_LINE, quality.untiled_psnr_db)
    return series


def _psnr(axes: Axes, series: Mapping[str, tuple[style.Look, Sequence[float]]], experiment: str) -> None:
    for name, (look, values) in series.items():
        drawn = [value if math.isfinite(value) else math.nan for value in values]
        line: dict[str, Any] = {"linestyle": look.line, "linewidth": look.width}
        marks: dict[str, Any] = {"color": look.colour, "marker": look.marker, "markersize": _MARK_IN_PT[look]}
        axes.plot([], [], label=name, **line | marks)  # for the legend
        axes.plot(drawn, color=look.colour, gid=style.tag(experiment), **line)
        for iteration in range(0, len(drawn), math.ceil(len(drawn) / MOST_MARKS)):
            at = f"after {wording.counted(iteration, 'iteration')}" if iteration else "at the start"
            hover = f"{experiment}, {name}, {at}: {wording.digits(drawn[iteration], 4)} dB"
            axes.plot(iteration, drawn[iteration], linestyle="none", gid=style.tag(experiment, "", hover), **marks)
    style.title(axes, "PSNR against the truth")
    axes.set_xlabel("iterations")
    axes.set_ylabel("PSNR, dB")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _smooth_if_large(image: re.Match[str]) -> str:
    """A picture with more pixels than it is drawn with would lose whole rows if each were a square."""
    return image[0].replace(_SQUARES, "") if max(map(int, _SIDES.findall(image[0]))) > SMALL else image[0]
