"""The small picture beside a finding: how each count's time divides into compute, transfer and wait."""

from dataclasses import dataclass

import pandas as pd

from trisect import wording
from trisect.report.figures.style import PART_LOOKS
from trisect.results.tables import TOTAL

HEIGHT = 100
"""Units of the drawing area: a percent each, so that compute's height is the parallel efficiency."""

BAR, STEP = 20, 30


@dataclass(frozen=True)
class SharePart:
    """One rectangle."""

    name: str
    y: float
    height: float
    hover: str


@dataclass(frozen=True)
class Bar:
    """One GPU count."""

    gpus: int
    x: int
    oversubscribed: bool
    parts: list[SharePart]


def shares(rows: pd.DataFrame) -> list[Bar]:
    """Per count, the shares of compute, transfer and wait in the span of all sections, from the bottom up."""
    total = rows[rows["section"] == TOTAL].sort_values("gpus")
    bars = []
    for place, row in enumerate(total.to_dict("records")):
        top, parts = float(HEIGHT), []
        for name in PART_LOOKS:
            share = row[f"{name}_s"] / row["span_s"]
            top -= HEIGHT * share
            hover = f"{row['gpus']}: {name} {wording.percent(share)}"
            parts.append(SharePart(name, round(top, 2), round(HEIGHT * share, 2), hover))
        bars.append(Bar(int(row["gpus"]), place * STEP, bool(row["oversubscribed"]), parts))
    return bars
