"""Each count relative to the smallest of its sweep: speedup, cost, and what its compute costs."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from trisect.analysis import bootstrap
from trisect.analysis.pop import ratio, times_of
from trisect.errors import TrisectError
from trisect.results.tables import RELATIVE, TOTAL, Values


def scaling(runs: Mapping[int, tuple[pd.DataFrame, pd.DataFrame]]) -> pd.DataFrame:
    """Relate each count's decomposition to that of the smallest count, the baseline.

    Args:
        runs: by number of GPUs, the decomposition's `table` (tables.DECOMPOSITION, further columns are kept) and its
            `iterations`.

    Returns:
        The tables one below the other, smallest count first, and the columns `baseline_gpus` and tables.RELATIVE with
        bounds. A section that the smallest count lacks has NaN. At the smallest count itself `speedup`, `cost` and
        `comp_scaling` are 1 by definition, so they have no bounds.

    Raises:
        TrisectError: there is no run, or a table is of another count than its key says.
    """
    if not runs:
        raise TrisectError("no finished run to relate to another; run at least one GPU count first")
    for gpus, (table, _) in runs.items():
        if set(table["gpus"]) != {gpus}:
            raise TrisectError(f"the decomposition for {gpus} GPUs is of {sorted(set(table['gpus']))}; run it again")
    baseline = min(runs)
    tables = []
    for gpus in sorted(runs):
        table, iterations = runs[gpus]
        there = baseline, runs[baseline][1]
        rows = [
            _relative(name, (gpus, iterations), there, useful_share(runs[baseline][0], name))
            for name in table["section"]
        ]
        relative = pd.DataFrame(rows, index=table.index)
        tables.append(pd.concat([table.assign(baseline_gpus=baseline), relative], axis=1))
    return pd.concat(tables, ignore_index=True)


def largest_fair_counts(scaling: pd.DataFrame) -> dict[str, int]:
    """Per experiment, the largest count that was not oversubscribed; the largest of all where every count was."""
    chosen = {}
    for name, rows in scaling.groupby("experiment", sort=False):
        fair = rows.loc[~rows["oversubscribed"].astype(bool), "gpus"]
        chosen[str(name)] = int(rows["gpus"].max() if fair.empty else fair.max())
    return chosen


def useful_share(table: pd.DataFrame, section: str) -> float:
    """The share of a section's compute that one process without tiles would also do: 1 / tile_work.

    Of TOTAL, over all its sections by their compute. NaN where the table (tables.RUN_DECOMPOSITION) has no tile_work.
    """
    if "tile_work" not in table:
        return float("nan")
    rows = table[table["section"] != TOTAL] if section == TOTAL else table[table["section"] == section]
    computed = rows["compute_s"].sum()
    return float((rows["compute_s"] / rows["tile_work"]).sum(skipna=False) / computed) if computed else float("nan")


def _relative(
    section: str, run: tuple[int, pd.DataFrame], baseline: tuple[int, pd.DataFrame], useful: float
) -> dict[str, float]:
    gpus, base_gpus = run[0], baseline[0]
    here, there = (times_of(section, iterations, ["span_s", "compute_s"]) for _, iterations in (run, baseline))

    def statistic(weights: Values, base_weights: Values) -> Values:
        span, compute = (weights @ here).T
        base_span, base_compute = (base_weights @ there).T
        comp_scaling = ratio(base_gpus * base_compute, gpus * compute)
        cost = ratio(gpus * span, base_gpus * base_span)
        efficiency = ratio(compute, span) * comp_scaling
        return np.array([ratio(base_span, span), cost, comp_scaling, efficiency, efficiency * useful])

    if gpus != base_gpus:
        return bootstrap.estimates(RELATIVE, statistic, len(here), len(there))
    of_one = bootstrap.estimates(RELATIVE, lambda weights: statistic(weights, weights), len(here))
    by_definition = [f"{name}{end}" for name in ("speedup", "cost", "comp_scaling") for end in ("_lo", "_hi")]
    return of_one | dict.fromkeys(by_definition, float("nan"))
