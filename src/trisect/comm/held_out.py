"""A prediction beside what was measured, and how far it is off."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pandas as pd

from trisect.comm.model import TIMES
from trisect.errors import TrisectError
from trisect.tables import with_bounds

QUANTITIES = (*TIMES, "load_balance", "comm_efficiency", "parallel_efficiency", "cost")
"""What is predicted; cost is relative to the smallest measured count."""

MEASURED = (*with_bounds(QUANTITIES[:-1]), QUANTITIES[-1])
"""The same measured, with 95 % intervals, which one run alone gives for all but cost."""

FITTED, HELD_OUT, PREDICTED = "fitted", "held out", "predicted"

PREDICTION = (
    "experiment",
    "section",
    "gpus",
    "role",  # FITTED, HELD_OUT (measured and not fitted), PREDICTED (not measured)
    "oversubscribed",  # of the measured run: its ranks shared cores, which the model does not know
    *QUANTITIES,  # modelled
    *(f"measured_{name}" for name in MEASURED),  # NaN where not measured
    *(f"error_{name}" for name in QUANTITIES),  # modelled over measured, less 1
)
"""Columns of prediction.csv."""


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
    renamed = measured[["section", "gpus", *MEASURED]].rename(columns={name: f"measured_{name}" for name in MEASURED})
    table = _with_cost(modelled, base).merge(renamed, on=["section", "gpus"], how="left", validate="1:1")
    for name in QUANTITIES:
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
