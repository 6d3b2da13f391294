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

PREDICTED_SHOWN = ("span_s", "compute_s", "transfer_s", "wait_s", "parallel_efficiency", "cost")
PREDICTION_CELLS: cells.NumberColumns = {name: cells.MAIN[name] for name in PREDICTED_SHOWN}
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
    measured = total[total["measured_span_s"].notna()]
    rows = []
    for row in measured.to_dict("records"):
        made = []
        for name, (_, form) in PREDICTION_CELLS.items():
            off, now, was = row[f"error_{name}"], row[name], row[f"measured_{name}"]
            spread = "" if pd.isna(was) else f"{form(now)} for {form(was)}"
            made.append(cells.Cell(wording.signed_percent(off), spread, "" if pd.isna(off) else str(off)))
        flag = bool(row["oversubscribed"])
        rows.append(cells.GridRow(row["experiment"], TOTAL, int(row["gpus"]), flag, [row["role"]], made))
    return cells.Grid(["role"], [title for title, _ in PREDICTION_CELLS.values()], rows)
