"""Ranks' clocks on one scale, from collectives that end everywhere at nearly the same moment.

How near depends on the collective: where compute follows at once, a rank that is done can hold up one that is not.
So the fit uses the places in an iteration whose collectives, over all iterations, end most nearly together.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from trisect.results.tables import ALL_TO_ALL, Values

MIN_ENDS = 4
"""A place in the iteration is judged by its ends only if there are so many."""

TIGHT = 2
"""Places are used whose residual is at most so many times the best one's."""

DRIFT_GAIN = 2
"""A drift is believed if it makes a rank's residual so many times smaller than an offset alone does."""

QUANTILE = 0.95


@dataclass(frozen=True)
class Clocks:
    """The clocks of all ranks against the first rank's: time there = time here - offset - drift * time here.

    Times here count from the rank's `origin_ns`, times there from the first rank's.
    """

    ranks: npt.NDArray[np.int64]  # sorted
    origin_ns: npt.NDArray[np.int64]
    offset_ns: Values
    drift: Values  # 5e-5 is 50 ppm
    residual_ns: float  # QUANTILE of the ends used lie within this of where the fit puts them
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
        paired: rows of `pairing.pair`, in sections and outside.
        world_size: the number of ranks.

    Returns:
        The clocks, or None where no all-to-all collective joins all ranks.
    """
    rows = paired[paired["op"].isin(ALL_TO_ALL) & (paired["group_size"] == world_size)]
    if rows.empty:
        return None
    ends = rows.pivot(index=["slot", "pair"], columns="rank", values="end_ns").sort_values(rows["rank"].min())
    origin = ends.iloc[0].to_numpy()
    here = (ends.to_numpy() - origin).astype(float)
    used = here[_tight(here, ends.index.get_level_values("slot").to_numpy())]
    offset, drift = _fit(used)
    residual = float(_spread(used, offset, drift).max())
    return Clocks(ends.columns.to_numpy(), origin, offset, drift, residual, len(used))


def _tight(here: Values, slot: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which ends to use; `here` has shape (collectives, ranks), in order of time, `slot` is the place of each."""
    sizes = np.bincount(slot)
    judged = np.flatnonzero(sizes >= MIN_ENDS)
    if not len(judged):
        return np.ones(len(slot), dtype=bool)
    ends = [here[slot == one] for one in judged]
    residual = np.array([_spread(one, *_fit(one)).max() for one in ends])
    return np.isin(slot, judged[residual <= TIGHT * residual.min()])


def _fit(here: Values) -> tuple[Values, Values]:
    """Offset and drift of every rank against the first.

    Medians throughout, so that a few late ends move nothing: the drift is Theil's slope with each end of the first half
    joined to one of the second, which keeps the cost linear.
    """
    behind = here - here[:, :1]
    half = len(here) // 2
    drift = np.zeros(here.shape[1])
    if half:
        run, rise = here[-half:] - here[:half], behind[-half:] - behind[:half]
        drift = np.median(np.divide(rise, run, out=np.zeros_like(run), where=run > 0), axis=0)
    offset, level = np.median(behind - drift * here, axis=0), np.median(behind, axis=0)
    believed = _spread(here, level, np.zeros_like(drift)) > DRIFT_GAIN * _spread(here, offset, drift)
    return np.where(believed, offset, level), np.where(believed, drift, 0)


def _spread(here: Values, offset: Values, drift: Values) -> Values:
    """Within what the ends agree, by rank."""
    spread: Values = np.quantile(np.abs(here - here[:, :1] - drift * here - offset), QUANTILE, axis=0)
    return spread


def end_spread(paired: pd.DataFrame, clocks: Clocks) -> pd.Series:
    """How far apart the ranks' ends of each collective lie on aligned clocks: seconds, by `pair`."""
    aligned = pd.Series(clocks.align(paired["rank"], paired["end_ns"]), index=paired.index)
    by_pair = aligned.groupby(paired["pair"])
    return (by_pair.max() - by_pair.min()) / 1e9


def wait_by_clock(exposed: pd.DataFrame, clocks: Clocks) -> pd.DataFrame:
    """The wait as aligned arrivals show it beside the wait that durations show, which needs no clock.

    Returns:
        Seconds summed over iterations, by section: columns `by_clock` and `by_duration`: of all-to-all collectives, the
        mean over the ranks of their groups. They differ where ends do not coincide: late start is as uncertain.
    """
    rows = exposed[exposed["op"].isin(ALL_TO_ALL)]
    arrival = pd.Series(clocks.align(rows["rank"], rows["start_ns"] + rows["hidden_ns"]), index=rows.index)
    by_pair = arrival.groupby(rows["pair"])
    by_duration = rows.groupby("pair")["wait_ns"].mean()
    found = pd.DataFrame({"by_clock": by_pair.max() - by_pair.mean(), "by_duration": by_duration}) / 1e9
    return found.groupby(rows.groupby("pair")["section"].first()).sum()
