"""The POP efficiencies, from times of one section or of several summed.

Definitions: https://co-design.pop-coe.eu/metrics/index.html
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from trisect.results.tables import TOTAL, Values


def times_of(section: str, iterations: pd.DataFrame, columns: Sequence[str]) -> Values:
    """tables.ITERATIONS of a section, or of all for TOTAL: shape (iterations, columns); NaN where it has no row."""
    rows = iterations if section == TOTAL else iterations[iterations["section"] == section]
    values = rows.groupby("iteration")[list(columns)].sum().to_numpy()
    return values if len(values) else np.full((1, len(columns)), np.nan)


def efficiencies(times: Mapping[str, Values]) -> dict[str, Values]:
    """Load balance, communication efficiency and their parts.

    Args:
        times: `span_s`, `compute_s`, `transfer_s` and `compute_max_s` (tables.TIMES), arrays of one shape.

    Returns:
        tables.EFFICIENCIES, of that shape. NaN where nothing was computed or nothing ran.
    """
    span, compute = times["span_s"], times["compute_s"]
    compute_max, without_transfer = times["compute_max_s"], span - times["transfer_s"]
    return {
        "load_balance": ratio(compute, compute_max),
        "comm_efficiency": ratio(compute_max, span),
        "serialization_efficiency": ratio(compute_max, without_transfer),
        "transfer_efficiency": ratio(without_transfer, span),
        "parallel_efficiency": ratio(compute, span),
    }


def ratio(over: Values, under: Values) -> Values:
    """over / under, NaN where `under` is 0."""
    return np.divide(over, under, out=np.full(np.shape(under), np.nan), where=np.asarray(under) != 0)
