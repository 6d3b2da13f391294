"""Predictions as the page shows them: the answers in words, and the error at each count that was measured."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from trisect import wording
from trisect.report.material import Material
from trisect.report.sections import cells
from trisect.report.text.note_words import all_in_words
from trisect.report.text.prediction_text import what_if_cells, what_if_columns
from trisect.results.layout import Layout
from trisect.results.tables import TOTAL

PREDICTION_CELLS: cells.NumberColumns = {
    name: cells.MAIN[name] for name in ("span_s", "compute_s", "transfer_s", "wait_s", "parallel_efficiency", "cost")
}
"""Columns of the tables; prediction.csv holds the others."""


def predictions_view(material: Material) -> list[dict[str, Any]]:
    """What the template needs: an entry per experiment."""
    here = Layout(Path())
    found = []
    for name, rows in material.prediction.groupby("experiment", sort=False):
        record = material.predictions[str(name)]
        changes = [what_if_cells(change, record) for change in record.what_if]
        found.append(
            {
                "experiment": str(name),
                "fitted": record.fitted,
                "answers": all_in_words(record.answers, record.unit),
                "changes": {"titles": list(what_if_columns(record).values()), "rows": changes},
                "notes": all_in_words(record.notes, record.unit),
                "errors": _errors(rows[rows["section"] == TOTAL]),
                "all": cells.grid(rows, {"section": "section", "role": "role"}, PREDICTION_CELLS),
                "file": quote(here.prediction(str(name)).as_posix()),
            }
        )
    return found


def _errors(total: pd.DataFrame) -> cells.Grid:
    """A row per measured count; a cell is the error, and below it what was modelled and measured."""
    measured = total[total["measured_span_s"].notna()].drop(columns="section")
    spreads = {
        f"error_{name}_spread": [
            "" if pd.isna(was) else f"{form(now)} for {form(was)}"
            for now, was in zip(measured[name], measured[f"measured_{name}"], strict=True)
        ]
        for name, (_, form) in PREDICTION_CELLS.items()
    }
    errors = {f"error_{name}": (title, wording.relative_error) for name, (title, _) in PREDICTION_CELLS.items()}
    return cells.grid(measured.assign(**spreads), {"role": "role"}, errors)
