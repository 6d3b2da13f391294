"""A prediction beside what was measured, with its relative errors."""

from collections.abc import Collection, Mapping

import pandas as pd

from trisect.errors import TrisectError
from trisect.model.predict import with_cost
from trisect.results import tables
from trisect.wording import listed


def beside(
    experiment: str, modelled: pd.DataFrame, runs: Mapping[int, pd.DataFrame], fitted: Collection[int]
) -> pd.DataFrame:
    """Modelled and measured values of every section and count.

    Args:
        experiment: its name.
        modelled: from `predict.predict`, with every count of `runs`.
        runs: by measured count, tables.RUN_DECOMPOSITION.
        fitted: the counts that the model was fitted at.

    Returns:
        tables.PREDICTION, a row for each of `modelled`.

    Raises:
        TrisectError: a section was modelled that is not measured, or the other way round.
    """
    base = min(runs)
    measured = with_cost(pd.concat(runs.values(), ignore_index=True), base)
    if set(measured["section"]) != set(modelled["section"]):
        sections = listed(sorted(set(measured["section"]) ^ set(modelled["section"])))
        raise TrisectError(f"{experiment}: section {sections} is not both measured and modelled; run the sweep again")
    keyed = measured.set_index(["section", "gpus"])[list(tables.MEASURED_QUANTITIES)].add_prefix("measured_")
    table = with_cost(modelled, base).merge(keyed.reset_index(), on=["section", "gpus"], how="left", validate="1:1")
    for name in tables.PREDICTED_QUANTITIES:
        over = table[f"measured_{name}"]
        table[f"error_{name}"] = table[name] / over.where(over != 0) - 1
    roles = {n: tables.FITTED if n in fitted else tables.HELD_OUT for n in runs}
    return table.assign(
        experiment=experiment,
        role=table["gpus"].map(roles).fillna(tables.PREDICTED),
        oversubscribed=table["gpus"].isin(measured.loc[measured["oversubscribed"], "gpus"]),
    )[list(tables.PREDICTION)]
