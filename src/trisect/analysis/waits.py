"""Transfer and wait of each paired collective, and why ranks waited.

A rank's *arrival* at a collective is when its exposed part begins: start + hidden. `c` is the time from its
section's start, or the end of the collective before, to its arrival. All times are on the rank's own clock.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from trisect.results.tables import Values

_OCCURRENCE = ["rank", "iteration", "section", "occurrence"]


def expose(paired: pd.DataFrame, sections: pd.DataFrame) -> pd.DataFrame:
    """Split each collective's exposed time.

    Args:
        paired: from `pairing.pair`.
        sections: tables.SECTIONS.

    Returns:
        `paired` with the columns `exposed_ns` (d), `transfer_ns` (the least d of its pair), `wait_ns` (the rest),
        `before_ns` (when c starts to count) and `c_ns`.
    """
    opening = sections[[*_OCCURRENCE, "start_ns"]]
    rows = paired.merge(opening, how="left", on=_OCCURRENCE, suffixes=("", "_of_section"), validate="m:1")
    rows["exposed_ns"] = rows["end_ns"] - rows["start_ns"] - rows["hidden_ns"]
    rows["transfer_ns"] = rows.groupby("pair")["exposed_ns"].transform("min")
    rows["wait_ns"] = rows["exposed_ns"] - rows["transfer_ns"]
    within = rows.groupby(_OCCURRENCE, sort=False)
    last_end = rows.assign(last=within["end_ns"].cummax()).groupby(_OCCURRENCE, sort=False)["last"]
    # Integers all the way: as float64, nanoseconds since the epoch would lose their last two digits.
    before_first = rows.pop("start_ns_of_section").astype("int64")
    rows["before_ns"] = last_end.shift(fill_value=0).mask(within.cumcount() == 0, before_first)
    rows["c_ns"] = rows["start_ns"] + rows["hidden_ns"] - rows["before_ns"]
    return rows


@dataclass(frozen=True)
class Slot:
    """One collective of a section through all iterations."""

    c_s: Values  # shape (iterations, ranks of its group); 0 where an iteration lacks it
    share: float  # ranks of its group over all ranks: the others wait for nobody


def slots(exposed: pd.DataFrame, iterations: pd.Index, world_size: int) -> dict[str, list[Slot]]:
    """The arrivals of every collective of `expose`, by section; `iterations` are all that are measured, in order."""
    rows = exposed[exposed["paired"]].sort_values(["slot", "iteration", "rank"])
    found: dict[str, list[Slot]] = {}
    bounds = np.flatnonzero(np.diff(rows["slot"].to_numpy(), prepend=-1, append=-1))
    c_s, sizes = rows["c_ns"].to_numpy() / 1e9, rows["group_size"].to_numpy()
    at, names = iterations.get_indexer(pd.Index(rows["iteration"])), rows["section"].to_numpy()
    for begin, end in pairwise(bounds):
        size = sizes[begin]
        filled = np.zeros((len(iterations), size))
        filled[at[begin:end:size]] = c_s[begin:end].reshape(-1, size)
        found.setdefault(str(names[begin]), []).append(Slot(filled, size / world_size))
    return found


def arrival_spread(of_section: list[Slot], iterations: int) -> Values:
    """What each iteration's wait would be had all ranks begun together: sum over collectives of max c - mean c.

    Returns:
        Seconds, shape (iterations,), averaged over all ranks of the job.
    """
    total = np.zeros(iterations)
    for slot in of_section:
        total += slot.share * (slot.c_s.max(axis=1) - slot.c_s.mean(axis=1))
    return total


def imbalance(of_section: list[Slot], weights: Values) -> Values:
    """Wait because the same ranks are late every time: sum over collectives of max_r mean_t c - mean c.

    Args:
        of_section: from `slots`.
        weights: of the iterations, shape (B, iterations), rows of sum 1.

    Returns:
        Seconds, shape (B,), averaged over all ranks of the job.
    """
    total = np.zeros(len(weights))
    for slot in of_section:
        mean = weights @ slot.c_s
        total += slot.share * (mean.max(axis=1) - mean.mean(axis=1))
    return total
