"""Before and after a change: by how much each metric differs, and whether by more than noise.

Noise is the variation over iterations within the two runs. Many differences are tested at once, so each p-value is
adjusted by Holm's method: where nothing changed, the chance that anything at all is called worse or better is at most
LEVEL. docs/comparing.md says what that does not cover.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from trisect.analysis import bootstrap, pop
from trisect.errors import TrisectError
from trisect.results.notes import Note
from trisect.results.tables import COMPARISON, EFFICIENCIES, TOTAL, RunKey, Values
from trisect.wording import listed

COMPARED_TIMES = ("span_s", "compute_s", "transfer_s", "wait_s", "compute_max_s")
"""Seconds: more is worse. Hidden and idle time lie within compute, and neither is good or bad alone."""

COMPARED = (*COMPARED_TIMES, *EFFICIENCIES)
"""What is compared: times, and the efficiencies, of which less is worse."""

LEVEL = 0.05
"""Chance of a false alarm, over all differences of a comparison together."""

SMALLEST_CHANGE = 0.02
"""Smallest change that counts: of the section's span for times, in points for efficiencies."""

_ROUNDING = 1e-9

WORSE, BETTER, NOISE, UNTESTED = "worse", "better", "within noise", "unknown"


@dataclass(frozen=True)
class Comparison:
    """Two sweeps, or two runs, beside each other."""

    table: pd.DataFrame  # COMPARISON
    only_before: list[RunKey]
    only_after: list[RunKey]
    changed: list[Note]  # how the runs' own records differ
    folders: tuple[str, str] = ("", "")  # where they lie, before and after

    def beyond_noise(self, verdict: str) -> pd.DataFrame:
        """The rows that are WORSE, or BETTER."""
        return self.table[self.table["verdict"] == verdict]


def compare(
    before: Mapping[RunKey, pd.DataFrame],
    after: Mapping[RunKey, pd.DataFrame],
    metrics: Sequence[str] = COMPARED,
    least: float = SMALLEST_CHANGE,
) -> pd.DataFrame:
    """Compare the runs that are on both sides.

    Args:
        before: each run's `Decomposition.iterations`.
        after: the same after the change.
        metrics: those of COMPARED to compare; fewer make each test sharper.
        least: smallest change that counts.

    Returns:
        COMPARISON, a row per run, section (and TOTAL) and metric, by experiment and count.

    Raises:
        TrisectError: no run is on both sides, or a run's sections differ.
    """
    rows, p_values = [], []
    for run in sorted(before.keys() & after.keys()):
        sections = list(dict.fromkeys(before[run]["section"]))
        if set(sections) != set(after[run]["section"]):
            ours, theirs = (listed(dict.fromkeys(side[run]["section"])) for side in (before, after))
            who = run[0] or "job"
            raise TrisectError(f"{who} at {run[1]}: sections {ours} before, {theirs} after; sections must agree")
        for section in [*sections, TOTAL]:
            old, new = (pop.times_of(section, side[run], COMPARED_TIMES) for side in (before, after))
            found, p_value = _differences(old, new, metrics)
            rows.append(found.assign(experiment=run[0], gpus=run[1], section=section))
            p_values.append(p_value)
    if not rows:
        raise TrisectError("no run is on both sides; compare the same experiments at the same counts")
    table = pd.concat(rows, ignore_index=True)
    table["p_adjusted"] = holm(np.concatenate(p_values))
    table["verdict"] = _verdicts(table, least)
    return table[list(COMPARISON)]


def holm(p_values: Values) -> Values:
    """Holm's adjusted p-values; NaN is no test and stays NaN.

    Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6, 1979.
    """
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    left = np.arange(len(order), 0, -1)
    adjusted = np.full(len(p_values), np.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(left * p_values[order]), 1)
    return adjusted


def _differences(before: Values, after: Values, metrics: Sequence[str]) -> tuple[pd.DataFrame, Values]:
    """The metrics of one section, and how likely such a difference is where there is none."""
    old, new = _statistic(before, metrics), _statistic(after, metrics)
    low, high = bootstrap.intervals(lambda one, other: new(other) - old(one), len(before), len(after))
    values = pd.DataFrame({"metric": metrics, "before": bootstrap.plain(old, len(before))})
    values["after"] = bootstrap.plain(new, len(after))
    values["difference"] = values["after"] - values["before"]
    values["difference_lo"], values["difference_hi"] = low, high
    is_time = values["metric"].isin(COMPARED_TIMES)
    values["change"] = values["difference"].where(~is_time, values["difference"] / before[:, 0].mean())
    return values, _p_values(values, _pseudo_values(old, len(before)), _pseudo_values(new, len(after)))


def _p_values(values: pd.DataFrame, before: Values, after: Values) -> Values:
    """Welch's t-test on the pseudo-values; NaN where there are fewer than 2 iterations or a metric is not defined."""
    if min(before.shape[1], after.shape[1]) < 2:
        return np.full(len(values), np.nan)
    from scipy import stats  # as in bootstrap.intervals: 0.6 s that other commands need not wait for

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # values that are all alike have no spread: p is 0, or 1 below
        found: Values = stats.ttest_ind(after, before, axis=1, equal_var=False).pvalue
    return np.where(values["difference"].abs() <= _ROUNDING * values["before"].abs(), 1.0, found)


def _pseudo_values(statistic: Callable[[Values], Values], count: int) -> Values:
    """Jackknife pseudo-values, shape (quantities, count): of a mean, the values themselves.

    Tukey's: count * (of all) - (count - 1) * (without one); their mean is the statistic, to a bias of 1/count.
    """
    if count < 2:
        return np.full((len(bootstrap.plain(statistic, count)), count), np.nan)
    without_one = (1 - np.eye(count)) / (count - 1)
    pseudo: Values = count * bootstrap.plain(statistic, count)[:, None] - (count - 1) * statistic(without_one)
    return pseudo


def _statistic(times: Values, metrics: Sequence[str]) -> Callable[[Values], Values]:
    def statistic(weights: Values) -> Values:
        means = dict(zip(COMPARED_TIMES, (weights @ times).T, strict=True))
        values = means | pop.efficiencies(means)
        return np.array([values[name] for name in metrics])

    return statistic


def _verdicts(table: pd.DataFrame, least: float) -> npt.NDArray[np.str_]:
    more_is_worse = table["metric"].isin(COMPARED_TIMES)
    beyond = (table["p_adjusted"] < LEVEL) & (table["change"].abs() >= least)
    worse = beyond & ((table["difference"] > 0) == more_is_worse)
    unknown = table["p_adjusted"].isna()
    return np.select([unknown, worse, beyond], [UNTESTED, WORSE, BETTER], NOISE)
