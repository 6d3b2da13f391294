"""Any figure of the catalogue, by its name, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from trisect.errors import TrisectError
from trisect.report.catalogue import CATALOGUE
from trisect.report.figures import movement_figures, predicted, rank_heat, scaling_figures, style, svg
from trisect.report.text.notes import in_words
from trisect.results.notes import note
from trisect.results.tables import PREDICTION, RATES, SCALING

MODULES = (scaling_figures, movement_figures, predicted, rank_heat)
"""Where the functions are that draw; each has the name of its figure."""

FIGURE_COLUMNS: Mapping[str, Sequence[str]] = {
    "scaling": list(SCALING),
    "ranks": rank_heat.RANK_CELLS,
    "rates": list(RATES),
    "prediction": list(PREDICTION),
}
"""What the table of a figure has to have."""

NOTHING = {"rates": "nothing_moves", "prediction": "nothing_predicted"}
"""What a figure says whose table has no row, where that is no mistake: kinds of notes."""


def draw(name: str, table: pd.DataFrame, unit: str = "GPU") -> str:
    """One figure as an SVG document; the same table gives the same bytes.

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
    if not lacking and table.empty and kind in NOTHING:
        return svg.render(style.sentence(in_words(note(NOTHING[kind]), unit)))
    if lacking or table.empty:
        what = f"no column {lacking[0]}" if lacking else "no row"
        raise TrisectError(f"figure {name}: the {kind} table has {what}; rerun the decomposition")
    function: Callable[[pd.DataFrame], Figure] = next(
        getattr(module, name) for module in MODULES if hasattr(module, name)
    )
    return svg.render(function(table.assign(unit=unit)))
