"""The figures of the report, in its order: what each is called and which table it is drawn from.

Apart from what draws them (`figures.DRAW`), so that Snakemake can plan without matplotlib.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["scaling", "ranks", "rates", "prediction"]

CATEGORIES: dict[Kind, str] = {
    "scaling": "Scaling",
    "ranks": "Ranks",
    "rates": "Data movement",
    "prediction": "Prediction",
}
"""Where Snakemake's own report puts the figures of a table."""


class Entry(NamedTuple):
    """A figure of the report; its caption is workflow/report/NAME.rst."""

    title: str
    table: Kind


CATALOGUE: dict[str, Entry] = {
    "cost": Entry("What the same work costs", "scaling"),
    "times": Entry("Compute, transfer and wait in seconds", "scaling"),
    "crossing": Entry("Compute against transfer", "scaling"),
    "predicted": Entry("Predicted beside measured", "prediction"),
    "transfer_bytes": Entry("Transfer against bytes over a rate", "rates"),
    "implied_rate": Entry("Implied rate by route", "rates"),
    "wait_ratio": Entry("Wait over compute", "scaling"),
    "wait_causes": Entry("Wait over compute, by cause", "scaling"),
    "rank_compute": Entry("Which rank is late", "ranks"),
    "load_balance": Entry("Load balance", "scaling"),
    "comm_efficiency": Entry("Communication efficiency", "scaling"),
    "transfer_efficiency": Entry("Transfer efficiency", "scaling"),
    "serialization_efficiency": Entry("Serialization efficiency", "scaling"),
}


def drawn_from(kind: Kind) -> list[str]:
    """Names of the figures of one table."""
    return [name for name, entry in CATALOGUE.items() if entry.table == kind]
