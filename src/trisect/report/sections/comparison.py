"""Two sweeps beside each other, as the page shows it."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from trisect import wording
from trisect.analysis.differences import BETTER, COMPARED_TIMES, WORSE, Comparison
from trisect.report.sections.cells import Cell
from trisect.report.text.note_words import in_words
from trisect.report.text.tables_text import main_differences, run_name

TITLES = {"compute_max_s": "compute of the slowest rank", "comm_efficiency": "communication efficiency"}


def comparison_view(comparison: Comparison) -> dict[str, Any]:
    """What the template needs: rows beyond noise with the span of every run, all rows, and how many are which."""
    table = comparison.table
    return {
        "main": [_cells(row) for row in main_differences(table).to_dict("records")],
        "all": [_cells(row) for row in table.to_dict("records")],
        "worse": int((table["verdict"] == WORSE).sum()),
        "better": int((table["verdict"] == BETTER).sum()),
        "changed": [in_words(one, form="short") for one in comparison.changed],
        "only_before": [run_name(run) for run in comparison.only_before],
        "only_after": [run_name(run) for run in comparison.only_after],
    }


def _cells(row: dict[Hashable, Any]) -> dict[Hashable, Any]:
    """A row of tables.COMPARISON with its metric in words, and cells for the values before and after and the change."""
    is_time = row["metric"] in COMPARED_TIMES
    form, change = (wording.seconds, wording.seconds) if is_time else (wording.percent, wording.points)
    difference, lo, hi = (row[f"difference{end}"] for end in ("", "_lo", "_hi"))
    like = float(np.fmax.reduce(np.abs([difference, lo, hi])))
    shown = ("+" if difference > 0 else "") + change(difference, like)
    return row | {
        "metric": TITLES.get(row["metric"], wording.metric(row["metric"])),
        "before": Cell(form(row["before"]), value=str(row["before"])),
        "after": Cell(form(row["after"]), value=str(row["after"])),
        "difference": Cell(shown, change.interval(like, lo, hi), str(difference)),
    }
