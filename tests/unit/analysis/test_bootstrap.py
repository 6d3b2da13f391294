"""Intervals, held against scipy's own for one number at a time."""

import numpy as np
import pytest
from scipy import stats

from trisect.analysis import bootstrap, pop


def test_mean_is_scipys_percentile_interval():
    values = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 3.0])
    low, high = bootstrap.intervals(lambda weights: np.array([weights @ values, weights @ -values]), len(values))
    own = stats.bootstrap((values,), np.mean, n_resamples=2000, method="percentile", rng=np.random.default_rng(0))
    assert low[0] == pytest.approx(own.confidence_interval.low, rel=1e-12)
    assert high[0] == pytest.approx(own.confidence_interval.high, rel=1e-12)
    assert (low[1], high[1]) == pytest.approx((-high[0], -low[0]), rel=1e-12)


def test_two_samples_are_drawn_independently():
    one, two = np.array([1.0, 3.0, 2.0]), np.array([4.0, 8.0, 6.0, 5.0])
    ratio = stats.bootstrap(
        (one, two),
        lambda a, b, axis: a.mean(axis=axis) / b.mean(axis=axis),
        n_resamples=2000,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    low, high = bootstrap.intervals(lambda a, b: np.array([(a @ one) / (b @ two)]), 3, 4)
    assert (low[0], high[0]) == pytest.approx((ratio.low, ratio.high), rel=1e-12)


def test_one_iteration_has_no_interval():
    low, high = bootstrap.intervals(lambda weights: np.array([weights @ [3.0], weights @ [4.0]]), 1)
    assert np.isnan(low).all()
    assert np.isnan(high).all()
    assert len(low) == 2


def test_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(200):
        values = rng.normal(10, 1, size=40)
        low, high = bootstrap.intervals(lambda weights, values=values: np.array([weights @ values]), 40)
        hits += low[0] <= 10 <= high[0]
    assert 0.88 <= hits / 200 <= 0.99


def test_weights_count_draws():
    assert bootstrap.weights(np.array([[0, 0, 2], [1, 1, 1]])).tolist() == [[2 / 3, 0, 1 / 3], [0, 1, 0]]


def test_estimates_name_value_and_bounds():
    found = bootstrap.estimates(["x"], lambda weights: np.array([weights @ [1.0, 3.0]]), 2)
    assert found == {"x": 2, "x_lo": 1, "x_hi": 3}


def test_efficiencies_of_nothing_are_empty_not_zero():
    zero = {name: np.zeros(1) for name in ("span_s", "compute_s", "transfer_s", "compute_max_s")}
    assert all(np.isnan(value).all() for value in pop.efficiencies(zero).values())
