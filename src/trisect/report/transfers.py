"""Data movement as the page shows it: implied rates, what the probe found, and in which regime the messages are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from trisect.layout import Layout
from trisect.report import cells, numbers
from trisect.report.rates import gb_per_s, sentences


@dataclass(frozen=True)
class Movement:
    """What there is to say about data movement, as tables."""

    rates: pd.DataFrame  # comm.rates.TABLE of all experiments
    fits: pd.DataFrame | None = None  # comm.alpha_beta.FITS; None where nothing was probed
    messages: pd.DataFrame | None = None  # comm.regimes.MESSAGES of all runs, with experiment and gpus


RATES: cells.Columns = {
    "sent_bytes": ("bytes sent", numbers.size),
    "transfer_s": ("transfer", numbers.seconds),
    "gb_per_s": ("implied rate", gb_per_s),
    "machine_gb_per_s": ("machine's file", gb_per_s),
    "probed_gb_per_s": ("probe", gb_per_s),
    "off": ("transfer against one rate", numbers.signed_percent),
}
FITS: cells.Columns = {
    "alpha_s": ("latency", numbers.seconds),
    "gb_per_s": ("rate", gb_per_s),
    "crossover_bytes": ("crossover payload", numbers.size),
    "sizes": ("sizes", cells.plain),
    "residual": ("largest residual", numbers.percent),
}
MESSAGES: cells.Columns = {
    "count": ("messages per iteration", cells.plain),
    "smallest": ("smallest payload", numbers.size),
    "largest": ("largest payload", numbers.size),
    "share": ("of the section's bytes", numbers.percent),
}


def view(movement: Movement, unit: str) -> dict[str, Any]:
    """What the template needs; `unit` is what is counted, in the singular."""
    here = Layout(Path())
    return {
        "rates": [
            {
                "experiment": str(name),
                "sentences": sentences(rows, unit),
                "grid": _rates(rows),
                "file": quote(here.rates(str(name)).as_posix()),
            }
            for name, rows in movement.rates.groupby("experiment", sort=False)
        ],
        "fits": _fits(movement.fits),
        "fits_file": quote(here.fits.as_posix()),
        "messages": _messages(movement.messages),
    }


def _rates(rates: pd.DataFrame) -> cells.Grid:
    """The error is left out where the rate was found; a reading is named only where it makes a difference."""
    alike = rates.groupby(["section", "gpus"])["sent_bytes"].transform("nunique") == 1
    ran = zip(rates["algorithm"], rates["reading"], alike, strict=True)
    shown = rates[~(alike & rates.duplicated(["section", "gpus"]))].assign(
        algorithm=pd.Series(
            [how if how == reading or same else f"{how}, as a {reading}" for how, reading, same in ran], rates.index
        ),
        off=rates["off"].where(rates["gpus"] != rates["fitted_at"]),
    )
    return cells.grid(shown, {name: name for name in ("section", "route", "algorithm")}, RATES)


def _fits(fits: pd.DataFrame | None) -> cells.Grid | None:
    if fits is None:
        return None
    names = {"nodes": "nodes", "algorithm": "job", "ran": "ran", "reading": "reading", "protocol": "protocol"}
    return cells.grid(fits, names, FITS)


def _messages(messages: pd.DataFrame | None) -> cells.Grid | None:
    """By run, section and regime, how many messages there are and which part of the bytes they carry."""
    if messages is None:
        return None
    by = ["experiment", "gpus", "section"]
    sized = messages.assign(bytes=messages["payload_bytes"] * messages["count"])
    grouped = sized.groupby([*by, "regime"], sort=False)
    found = grouped.agg(
        count=("count", "sum"),
        smallest=("payload_bytes", "min"),
        largest=("payload_bytes", "max"),
        bytes=("bytes", "sum"),
    ).reset_index()
    found = found.assign(share=found["bytes"] / found.groupby(by)["bytes"].transform("sum"))
    return cells.grid(found, {"experiment": "run", "section": "section", "regime": "regime"}, MESSAGES)
