"""Data movement as the page shows it: implied rates, what the probe found, and in which regime the messages are."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from trisect import wording
from trisect.network.implied_rates import rate_notes
from trisect.report.material import Material
from trisect.report.sections import cells
from trisect.report.text.note_words import all_in_words
from trisect.results.layout import Layout
from trisect.wording import gb_per_s

RATE_COLUMNS: cells.NumberColumns = {
    "sent_bytes": ("bytes sent", wording.size),
    "transfer_s": ("transfer", wording.seconds),
    "gb_per_s": ("implied rate", gb_per_s),
    "machine_gb_per_s": ("machine's file", gb_per_s),
    "probed_gb_per_s": ("probe", gb_per_s),
    "off": ("transfer against one rate", wording.relative_error),
}
FIT_NAMES = {"nodes": "nodes", "algorithm": "job", "ran": "ran", "reading": "assumed algorithm", "protocol": "protocol"}
FIT_COLUMNS: cells.NumberColumns = {
    "alpha_s": ("latency", wording.seconds),
    "gb_per_s": ("rate", gb_per_s),
    "crossover_bytes": ("crossover payload", wording.size),
    "sizes": ("sizes", cells.plain),
    "residual": ("largest residual", wording.percent),
}
MESSAGE_COLUMNS: cells.NumberColumns = {
    "count": ("messages per iteration", cells.plain),
    "smallest": ("smallest payload", wording.size),
    "largest": ("largest payload", wording.size),
    "share": ("of the section's bytes", wording.percent),
}


def movement_view(material: Material) -> dict[str, Any]:
    """What the template needs."""
    here = Layout(Path())
    return {
        "rates": [
            {
                "experiment": str(name),
                "sentences": all_in_words(rate_notes(rows), material.unit),
                "grid": _rates(rows),
                "file": quote(here.rates(str(name)).as_posix()),
            }
            for name, rows in material.rates.groupby("experiment", sort=False)
        ],
        "fits": None if material.fits is None else cells.grid(material.fits, FIT_NAMES, FIT_COLUMNS),
        "fits_file": quote(here.fits.as_posix()),
        "messages": _messages(material.messages),
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
    return cells.grid(shown, {name: name for name in ("section", "route", "algorithm")}, RATE_COLUMNS)


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
    return cells.grid(found, {"experiment": "run", "section": "section", "regime": "regime"}, MESSAGE_COLUMNS)
