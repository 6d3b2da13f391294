"""Two sweeps beside each other, as the page shows it."""

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from trisect import wording
from trisect.analysis.differences import BETTER, COMPARED_TIMES, WORSE, Comparison
from trisect.report.sections.cells import Cell
from trisect.report.text.note_words import all_in_words
from trisect.report.text.tables_text import run_name
from trisect.results.tables import TOTAL

TITLES = {"compute_max_s": "compute of the slowest rank", "comm_efficiency": "communication efficiency"}


@dataclass(frozen=True)
class Difference:
    """One row: a metric of a section of a run."""

    experiment: str
    gpus: int
    section: str
    metric: str
    before: Cell
    after: Cell
    difference: Cell
    verdict: str


def comparison_view(comparison: Comparison) -> dict[str, Any]:
    """What the template needs: rows beyond noise with the span of every run, all rows, and how many are which."""
    table = comparison.table
    beyond = table["verdict"].isin([WORSE, BETTER])
    whole = (table["section"] == TOTAL) & (table["metric"] == "span_s")
    return {
        "main": _rows(table[beyond | whole]),
        "all": _rows(table),
        "worse": int((table["verdict"] == WORSE).sum()),
        "better": int((table["verdict"] == BETTER).sum()),
        "changed": all_in_words(comparison.changed),
        "alone": [
            f"{run_name(run)}: only {side}"
            for side, runs in (("before", comparison.only_before), ("after", comparison.only_after))
            for run in runs
        ],
    }


def _rows(table: pd.DataFrame) -> list[Difference]:
    rows = []
    for row in table.to_dict("records"):
        form = wording.seconds if row["metric"] in COMPARED_TIMES else wording.percent
        change = wording.seconds if row["metric"] in COMPARED_TIMES else wording.points
        ends = row["difference_lo"], row["difference_hi"]
        like = max((abs(value) for value in (row["difference"], *ends) if not math.isnan(value)), default=math.nan)
        sign = "+" if row["difference"] > 0 else ""
        rows.append(
            Difference(
                row["experiment"],
                row["gpus"],
                row["section"],
                TITLES.get(row["metric"], row["metric"].removesuffix("_s").replace("_", " ")),
                Cell(form(row["before"]), value=str(row["before"])),
                Cell(form(row["after"]), value=str(row["after"])),
                Cell(
                    sign + change(row["difference"], like),
                    wording.interval(like, *ends, change),
                    str(row["difference"]),
                ),
                row["verdict"],
            )
        )
    return rows
