"""Any figure of the catalogue, by its name, as SVG."""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from trisect.errors import TrisectError
from trisect.report.catalogue import CATALOGUE
from trisect.report.figures import (
    efficiency_figures,
    movement_figures,
    prediction_figures,
    rank_figures,
    scaling_figures,
    svg,
)
from trisect.report.text.note_words import in_words
from trisect.results.notes import Note, note
from trisect.results.tables import PREDICTION, RATES, SCALING

FAMILIES = (scaling_figures, efficiency_figures, rank_figures, movement_figures, prediction_figures)
"""Where the functions are that draw; each has the name of its figure."""

Draws = Callable[[pd.DataFrame], Figure | Note]
"""From a table, with a column `unit`, to the figure, or to a note that says why there is nothing to draw."""

FIGURE_COLUMNS: Mapping[str, Sequence[str]] = {
    "scaling": list(SCALING),
    "ranks": rank_figures.RANK_CELLS,
    "rates": list(RATES),
    "prediction": list(PREDICTION),
}
"""What the table of a figure has to have."""

NOTHING = {"rates": "nothing_moves", "prediction": "nothing_predicted"}
"""What a figure says whose table has no row, where that is no mistake: kinds of notes."""


def function_of(name: str) -> Draws:
    """The function that draws a figure."""
    function: Draws = next(getattr(family, name) for family in FAMILIES if hasattr(family, name))
    return function


def draw(name: str, table: pd.DataFrame, unit: str = "GPU") -> str:
    """One figure as an SVG document; the same table gives the same bytes.

    Where there is nothing to draw the document is a sentence that says why, which `svg.reason` reads back.

    Args:
        name: key of `catalogue.CATALOGUE`.
        table: the one that the catalogue names, with FIGURE_COLUMNS. Of rates and predictions there may be none.
        unit: what is counted, in the singular: "GPU", or "rank" where the ranks ran on CPUs.

    Raises:
        TrisectError: there is no such figure, or the table lacks rows or columns.
    """
    if name not in CATALOGUE:
        raise TrisectError(f"figure {name}: no such figure; choose one of {', '.join(CATALOGUE)}")
    kind = CATALOGUE[name].table
    lacking = [column for column in FIGURE_COLUMNS[kind] if column not in table.columns]
    if table.empty and kind in NOTHING:
        return svg.sentence(in_words(note(NOTHING[kind]), unit))
    if lacking or table.empty:
        what = f"no column {lacking[0]}" if lacking else "no row"
        raise TrisectError(f"figure {name}: the {kind} table has {what}; rerun the decomposition")
    drawn = function_of(name)(table.assign(unit=unit))
    return svg.sentence(in_words(drawn, unit)) if isinstance(drawn, Note) else svg.render(drawn)
