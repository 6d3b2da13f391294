"""Ranks' clocks on one scale, from collectives that end everywhere at nearly the same moment.

Each rank's difference to the first rank at the ends of shared collectives is fitted by a line: an offset and a
drift. The line is Theil's (median of slopes, then median of offsets), with each collective of the first half
joined to one of the second, so that a few late ends do not move it and the cost is linear in ranks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from trisect.tables import ALL_TO_ALL

Values = npt.NDArray[np.float64]

MIN_LARGE = 4
"""With fewer large collectives than this, small ones are used too: a line through two points has no residual."""


@dataclass(frozen=True)
class Clocks:
    """The clocks of all ranks against the first rank's: time there = time here - offset - drift * time here.

    Times here count from the rank's `origin_ns`, times there from the first rank's.
    """

    ranks: npt.NDArray[np.int64]  # sorted
    origin_ns: npt.NDArray[np.int64]
    offset_ns: Values
    drift: Values  # 5e-5 is 50 ppm
    residual_ns: float  # 95 % of the ends used lie within this of the lines
    collectives: int  # used for the fit

    def align(self, rank: pd.Series, time_ns: pd.Series) -> Values:
        """Times on the ranks' own clocks as nanoseconds on the first rank's, from its origin."""
        at = np.searchsorted(self.ranks, rank.to_numpy())
        here = (time_ns.to_numpy() - self.origin_ns[at]).astype(float)
        aligned: Values = here - self.offset_ns[at] - self.drift[at] * here
        return aligned


def align(paired: pd.DataFrame, world_size: int) -> Clocks | None:
    """Fit the clocks.

    Args:
        paired: rows of `pairing.pair` and `pairing.pair_outside`, with a `pair` number that is unique over both.
        world_size: the number of ranks.

    Returns:
        The clocks, or None where no all-to-all collective joins all ranks.
    """
    rows = paired[paired["op"].isin(ALL_TO_ALL) & (paired["group_size"] == world_size)]
    if rows.empty:
        return None
    large = rows[rows["bytes"] >= max(1, rows["bytes"].max() / 2)]
    rows = large if large["pair"].nunique() >= MIN_LARGE else rows
    ends = rows.pivot(index="pair", columns="rank", values="end_ns").sort_values(rows["rank"].min())
    origin = ends.iloc[0].to_numpy()
    here = (ends.to_numpy() - origin).astype(float)  # collectives x ranks
    behind = here - here[:, :1]
    half = len(here) // 2
    drift = np.zeros(here.shape[1])
    if half:
        run = here[-half:] - here[:half]
        drift = np.median(np.divide(behind[-half:] - behind[:half], run, out=np.zeros_like(run), where=run > 0), axis=0)
    offset = np.median(behind - drift * here, axis=0)
    residual = np.abs(behind - drift * here - offset)[:, 1:]
    spread = float(np.quantile(residual, 0.95)) if residual.size else 0.0
    return Clocks(ends.columns.to_numpy(), origin, offset, drift, spread, len(ends))


def end_spread(paired: pd.DataFrame, clocks: Clocks) -> pd.Series:
    """How far apart the ranks' ends of each collective lie on aligned clocks: seconds, by `pair`."""
    aligned = pd.Series(clocks.align(paired["rank"], paired["end_ns"]), index=paired.index)
    by_pair = aligned.groupby(paired["pair"])
    return (by_pair.max() - by_pair.min()) / 1e9


def wait_by_clock(exposed: pd.DataFrame, clocks: Clocks) -> pd.DataFrame:
    """The wait as aligned arrivals show it beside the wait that durations show, which needs no clock.

    Args:
        exposed: from `waits.expose`.
        clocks: from `align`.

    Returns:
        Seconds summed over iterations, by section: columns `by_clock` and `by_duration`: of all-to-all collectives, the
        mean over the ranks of their groups. They differ where ends do not coincide: late start is as uncertain.
    """
    rows = exposed[exposed["op"].isin(ALL_TO_ALL)]
    arrival = pd.Series(clocks.align(rows["rank"], rows["start_ns"] + rows["hidden_ns"]), index=rows.index)
    by_pair = arrival.groupby(rows["pair"])
    found = pd.DataFrame(
        {
            "by_clock": (by_pair.max() - by_pair.mean()) / 1e9,
            "by_duration": rows.groupby("pair")["wait_ns"].mean() / 1e9,
        }
    )
    return found.groupby(rows.groupby("pair")["section"].first()).sum()
