"""A prediction beside what was measured, and how far it is off."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pandas as pd

from trisect.errors import TrisectError
from trisect.results.tables import (
    FITTED,
    HELD_OUT,
    MEASURED_QUANTITIES,
    PREDICTED,
    PREDICTED_QUANTITIES,
    PREDICTION,
)


def beside(
    experiment: str, modelled: pd.DataFrame, tables: Mapping[int, pd.DataFrame], fitted: Collection[int]
) -> pd.DataFrame:
    """Modelled and measured values of every section and count.

    Args:
        experiment: its name.
        modelled: from `model.predict`, with every count of `tables`.
        tables: by measured count, tables.DECOMPOSITION, with `oversubscribed` where that is known.
        fitted: the counts that the model was fitted at.

    Returns:
        PREDICTION, a row for each of `modelled`.

    Raises:
        TrisectError: a section was modelled that is not measured, or the other way round.
    """
    base = min(tables)
    measured = _with_cost(pd.concat(tables.values(), ignore_index=True), base)
    if set(measured["section"]) != set(modelled["section"]):
        sections = " and ".join(sorted(set(measured["section"]) ^ set(modelled["section"])))
        raise TrisectError(f"{experiment}: section {sections} is not both measured and modelled; run the sweep again")
    shared = measured.set_index("gpus").get("oversubscribed", pd.Series(dtype=bool)).groupby(level=0).any()
    renamed = measured[["section", "gpus", *MEASURED_QUANTITIES]].rename(
        columns={name: f"measured_{name}" for name in MEASURED_QUANTITIES}
    )
    table = _with_cost(modelled, base).merge(renamed, on=["section", "gpus"], how="left", validate="1:1")
    for name in PREDICTED_QUANTITIES:
        over = table[f"measured_{name}"]
        table[f"error_{name}"] = table[name] / over.where(over != 0) - 1
    roles = {n: FITTED if n in fitted else HELD_OUT for n in tables}
    return table.assign(
        experiment=experiment,
        role=table["gpus"].map(roles).fillna(PREDICTED),
        oversubscribed=table["gpus"].isin(shared.index[shared]),
    )[list(PREDICTION)]


def _with_cost(table: pd.DataFrame, base: int) -> pd.DataFrame:
    first = table[table["gpus"] == base].set_index("section")["span_s"]
    return table.assign(cost=table["gpus"] * table["span_s"] / (base * table["section"].map(first)))
