"""Predictions as the page shows them: the answers in words, and the error at each count that was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from trisect.layout import Layout
from trisect.report import cells, numbers
from trisect.tables import TOTAL


@dataclass(frozen=True)
class Predictions:
    """What was predicted from the measured runs."""

    table: pd.DataFrame  # prediction.csv of all experiments
    words: Mapping[str, str]  # prediction.txt, by experiment


SHOWN = ("span_s", "compute_s", "transfer_s", "wait_s", "parallel_efficiency", "cost")
MODELLED: cells.Columns = {name: cells.MAIN[name] for name in SHOWN}
"""Columns of the tables; prediction.csv holds the others."""


def view(predictions: Predictions) -> list[dict[str, Any]]:
    """What the template needs: an entry per experiment."""
    here = Layout(Path())
    return [
        {
            "experiment": str(name),
            "words": _blocks(predictions.words.get(str(name), "")),
            "errors": _errors(rows[rows["section"] == TOTAL]),
            "all": cells.grid(rows, {"section": "section", "role": "role"}, MODELLED),
            "file": quote(here.prediction(str(name)).as_posix()),
        }
        for name, rows in predictions.table.groupby("experiment", sort=False)
    ]


def _blocks(words: str) -> list[tuple[bool, list[str]]]:
    """The paragraphs of prediction.txt, and whether each is aligned as a table; its first table is the page's own."""
    blocks = [block.splitlines() for block in words.split("\n\n") if block.strip()]
    return [(any("  " in line.strip() for line in block), block) for block in blocks if "gpus" not in block[0].split()]


def _errors(total: pd.DataFrame) -> cells.Grid:
    """A row per measured count; a cell is the error, and below it what was modelled and measured."""
    measured = total[total["measured_span_s"].notna()]
    rows = []
    for row in measured.to_dict("records"):
        made = []
        for name, (_, form) in MODELLED.items():
            off, now, was = row[f"error_{name}"], row[name], row[f"measured_{name}"]
            spread = "" if pd.isna(was) else f"{form(now)} for {form(was)}"
            made.append(cells.Cell(numbers.signed_percent(off), spread, "" if pd.isna(off) else str(off)))
        flag = bool(row["oversubscribed"])
        rows.append(cells.GridRow(row["experiment"], TOTAL, int(row["gpus"]), flag, [row["role"]], made))
    return cells.Grid(["role"], [title for title, _ in MODELLED.values()], rows)
