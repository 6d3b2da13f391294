"""The figures of the report, in its order: catalogue.yaml, read without matplotlib, so that Snakemake can plan."""

from __future__ import annotations

from typing import NamedTuple

from trisect.host import shipped_yaml

CATEGORIES = {
    "scaling": "Scaling",
    "ranks": "Ranks",
    "rates": "Data movement",
    "prediction": "Prediction",
    "timeline": "Timelines",
}
"""By the table that a figure is drawn from, where Snakemake's own report puts it."""


class Entry(NamedTuple):
    """A figure of the report."""

    title: str
    table: str  # key of CATEGORIES
    caption: str  # what it shows, in a line or two; a template with `unit`
    reading: str  # how to read it; likewise

    def worded(self, unit: str) -> Entry:
        """With `unit`, in the singular, put in."""
        return Entry(*(text.replace("{{ unit }}", unit) for text in self))


CATALOGUE = {name: Entry(**entry) for name, entry in shipped_yaml("trisect.report", "catalogue.yaml").items()}

TIMELINE = CATALOGUE.pop("timeline")
"""Of the drawn timelines, one a run."""
