"""What to know about implied rates before believing one, a sentence each, by the rules in docs/report.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from trisect.comm.nccl_log import UNKNOWN
from trisect.report import numbers

HIDDEN = 0.05
"""Communication under compute, over the transfer, from which it is named as what makes a rate too high."""


def sentences(rates: pd.DataFrame, unit: str = "GPU") -> list[str]:
    """What the rates of one experiment say and what they do not.

    Args:
        rates: comm.rates.TABLE of one experiment.
        unit: what is counted, in the singular: "GPU", or "rank" where the ranks ran on CPUs.
    """
    if rates.empty:
        return [f"No section at 2 or more {unit}s moves a known payload."]
    return [*_constants(rates), *_above(rates), *_unknown(rates, unit), *_cut(rates, unit)]


def gb_per_s(value: float, like: float | None = None) -> str:
    """A rate given in GB/s as text, with the prefix that keeps it, or `like`, short; a `numbers.Form`."""
    if pd.isna(value):
        return numbers.MISSING
    return f"{numbers.size(1e9 * value, None if like is None else 1e9 * like)}/s"


def _constants(rates: pd.DataFrame) -> Iterable[str]:
    """How well one rate, fitted at one count, predicts the transfer at the others."""
    between = rates[rates["route"] == "between"]
    for (section, reading), rows in between.groupby(["section", "reading"], sort=False):
        held_out = rows[rows["gpus"] != rows["fitted_at"]]
        if held_out.empty:
            continue
        fitted = rows[rows["gpus"] == rows["fitted_at"]].iloc[0]
        worst = float(held_out["off"].abs().max())
        yield (
            f"{section}: {gb_per_s(fitted['gb_per_s'])} between nodes, fitted at {fitted['gpus']} alone and read as a "
            f"{reading}, gives the transfer at {_counts(held_out['gpus'])} within {numbers.percent(worst)}."
        )


def _above(rates: pd.DataFrame) -> Iterable[str]:
    """Rates whose whole interval is above the machine's, and why that can be; none is clipped."""
    least = rates["gb_per_s_lo"].fillna(rates["gb_per_s"])
    above = rates[least > rates["machine_gb_per_s"]].drop_duplicates(["section", "gpus", "gb_per_s"])
    for place, row in above.iterrows():
        others = rates.drop(index=place)
        same = others[(others["section"] == row["section"]) & (others["gpus"] == row["gpus"])]
        yield (
            f"{row['section']} at {row['gpus']}, read as a {row['reading']}: {gb_per_s(row['gb_per_s'])} is above the "
            f"{gb_per_s(row['machine_gb_per_s'])} of the machine's file. {_why(row.to_dict(), same)}"
        )


def _why(row: Mapping[Any, Any], other_readings: pd.DataFrame) -> str:
    if row["hidden_s"] >= HIDDEN * row["transfer_s"]:
        share = numbers.percent(row["hidden_s"] / (row["hidden_s"] + row["transfer_s"]))
        return f"Up to {share} of the communication runs under compute, and transfer is only what is exposed."
    lower = other_readings[other_readings["gb_per_s"] < row["gb_per_s"]]
    if row["algorithm"] == UNKNOWN and not lower.empty:
        other = lower.iloc[0]
        return f"If it was a {other['reading']}, fewer bytes moved, and the rate is {gb_per_s(other['gb_per_s'])}."
    return "Fewer bytes moved over that route than the byte rule has, or the file's rate is too low: probe it."


def _unknown(rates: pd.DataFrame, unit: str) -> Iterable[str]:
    unknown = rates[rates["algorithm"] == UNKNOWN]
    if not unknown.empty:
        yield (
            f"No NCCL log says which algorithm ran at {_counts(unknown['gpus'])} {unit}s: the rate is one of the two "
            "readings."
        )


def _cut(rates: pd.DataFrame, unit: str) -> Iterable[str]:
    for gpus, lines in rates.drop_duplicates("gpus").set_index("gpus")["cut_lines"].items():
        if lines:
            yield f"{lines} lines of the NCCL logs at {gpus} {unit}s were cut and are left out."


def _counts(gpus: pd.Series) -> str:
    return numbers.listed([str(n) for n in sorted(gpus.unique())])
