"""95 % intervals by bootstrap over iterations.

Iterations are resampled with replacement, all ranks and sections of one iteration together, so ranks stay
paired and sections stay correlated as they were. The percentile interval is used rather than BCa: several of the
quantities are maxima over ranks, whose acceleration constant a jackknife over a handful of iterations does not
give. With few iterations either is too narrow; findings say so below MIN_ITERATIONS.
"""

import warnings
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from trisect.results.tables import Values, with_bounds

CONFIDENCE = 0.95
RESAMPLES = 2_000
SEED = 0
MIN_ITERATIONS = 5
"""Fewer than this and an interval says little; docs/metrics.md says why."""


def estimates(names: Sequence[str], statistic: Callable[..., Values], *iterations: int) -> dict[str, float]:
    """What `statistic` gives and its interval: `names`, and each with `_lo` and `_hi` (see `intervals`)."""
    low, high = intervals(statistic, *iterations)
    columns = zip(plain(statistic, *iterations), low, high, strict=True)
    values = [float(value) for three in columns for value in three]
    return dict(zip(with_bounds(names), values, strict=True))


def intervals(statistic: Callable[..., Values], *iterations: int) -> tuple[Values, Values]:
    """The interval of every number that `statistic` gives.

    Args:
        statistic: one array of weights a sample, shape (B, iterations) and every row of sum 1, to an array of shape
            (quantities, B). Weights 1/iterations give the plain estimate.
        iterations: of each independent sample (one run, or the two that a ratio compares).

    Returns:
        Lower and upper ends, shape (quantities,). NaN where a sample has one iteration: a single value has no spread
        that could be seen. The seed is fixed, so the same run always gives the same interval.
    """
    if min(iterations) < 2:
        empty = np.full(len(plain(statistic, *iterations)), np.nan)
        return empty, empty
    from scipy import stats  # takes 0.6 s to import, which commands without intervals need not wait for

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)  # an undefined quantity has NaN bounds
        found = stats.bootstrap(
            [np.arange(count) for count in iterations],
            lambda *indices, axis: statistic(*(weights(one) for one in indices)),
            n_resamples=RESAMPLES,
            confidence_level=CONFIDENCE,
            method="percentile",
            vectorized=True,
            rng=np.random.default_rng(SEED),
        ).confidence_interval
    return found.low, found.high


def plain(statistic: Callable[..., Values], *iterations: int) -> Values:
    """`statistic` of the samples as they are, shape (quantities,)."""
    return statistic(*(np.full((1, count), 1 / count) for count in iterations))[:, 0]


def weights(indices: npt.NDArray[np.int64]) -> Values:
    """How often each row of `indices`, shape (B, T), drew each of T iterations, over T."""
    rows = np.atleast_2d(indices)
    count, size = rows.shape
    drawn = np.bincount((rows + size * np.arange(count)[:, None]).ravel(), minlength=count * size)
    return drawn.reshape(count, size) / size
