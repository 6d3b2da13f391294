"""Differences found by hand, and no alarm where nothing changed."""

import math

import numpy as np
import pandas as pd
import pytest

from trisect.analysis import differences as comparing
from trisect.analysis.differences import BETTER, COMPARED, COMPARED_TIMES, NOISE, UNTESTED, WORSE, compare, holm
from trisect.errors import TrisectError
from trisect.results.tables import COMPARISON, TOTAL

RUN = ("e", 2)


def iterations(span, compute, transfer, section="s"):
    """A run's iterations: sequences of seconds; the slowest rank's compute is the compute plus half of the wait."""
    table = pd.DataFrame({"span_s": span, "compute_s": compute, "transfer_s": transfer})
    table["wait_s"] = table["span_s"] - table["compute_s"] - table["transfer_s"]
    table["compute_max_s"] = table["compute_s"] + table["wait_s"] / 2
    return table.assign(section=section, iteration=range(len(table)))


def random_run(rng, count=10, slower=1.0):
    compute = slower * rng.gamma(400, 0.1 / 400, count)  # 5 % spread, skewed
    transfer = rng.gamma(100, 0.02 / 100, count)
    wait = rng.exponential(0.01, count)
    return iterations(compute + transfer + wait, compute, transfer)


def of(table, section, metric):
    return table.set_index(["section", "metric"]).loc[section, metric]


def test_differences_by_hand():
    before = {RUN: iterations([10, 12, 11, 11], [6, 8, 7, 7], [2, 2, 2, 2])}
    after = {RUN: iterations([13, 15, 14, 14], [6, 8, 7, 7], [5, 5, 5, 5])}
    table = compare(before, after)
    assert list(table.columns) == list(COMPARISON)
    assert list(table["metric"]) == [*COMPARED] * 2
    span = of(table, "s", "span_s")
    assert (span["before"], span["after"], span["difference"]) == (11, 14, 3)
    assert span["change"] == pytest.approx(3 / 11)
    # By hand: both variances are 2/3, so t = 3 / sqrt(2 * (2/3) / 4) = 5.196 with 6 degrees of freedom.
    assert span["p_adjusted"] > 0.00202
    transfer = of(table, "s", "transfer_s")
    assert (transfer["difference_lo"], transfer["difference_hi"]) == (3, 3)
    assert transfer["p_adjusted"] == 0  # it is always 2, and then always 5
    balance, communication = of(table, "s", "load_balance"), of(table, "s", "comm_efficiency")
    assert balance["difference"] == balance["change"] == 0
    assert communication["before"] == pytest.approx(8 / 11)
    assert communication["after"] == pytest.approx(8 / 14)
    assert (transfer["verdict"], communication["verdict"], balance["verdict"]) == (WORSE, WORSE, NOISE)
    assert of(compare(after, before), "s", "transfer_s")["verdict"] == BETTER
    assert of(compare(after, before), "s", "comm_efficiency")["verdict"] == BETTER


def test_one_metric_alone_has_the_p_value_of_welchs_test():
    before = {RUN: iterations([10, 12, 11, 11], [6, 8, 7, 7], [2, 2, 2, 2])}
    after = {RUN: iterations([13, 15, 14, 14], [6, 8, 7, 7], [5, 5, 5, 5])}
    table = compare(before, after, ["span_s"])
    assert list(table["section"]) == ["s", TOTAL]
    # t = 5.196, 6 degrees of freedom: two-sided 0.00202; there are two rows of the same, so Holm doubles it.
    assert list(table["p_adjusted"]) == pytest.approx([0.00404, 0.00404], rel=1e-2)


def test_total_sums_the_sections_of_an_iteration():
    one, two = iterations([2, 4], [2, 4], [0, 0], "one"), iterations([1, 3], [1, 3], [0, 0], "two")
    both = {RUN: pd.concat([one, two])}
    table = compare(both, both)
    assert of(table, TOTAL, "span_s")["before"] == 5
    assert list(table["section"].unique()) == ["one", "two", TOTAL]


def test_holm_by_hand():
    p = np.array([0.01, math.nan, 0.04, 0.03, 0.005])
    np.testing.assert_allclose(holm(p), [0.03, math.nan, 0.06, 0.06, 0.02])
    assert list(holm(np.array([0.9, 0.8]))) == [1, 1]


def test_a_run_against_itself_differs_in_nothing():
    run = {RUN: random_run(np.random.default_rng(0))}
    table = compare(run, run)
    assert (table["difference"] == 0).all()
    assert (table["p_adjusted"] == 1).all()
    assert set(table["verdict"]) == {NOISE}


def test_without_a_change_an_alarm_is_as_rare_as_stated(monkeypatch):
    """300 comparisons of four unchanged runs each, 80 tests a comparison: about LEVEL of them may raise an alarm."""
    monkeypatch.setattr(comparing.bootstrap, "RESAMPLES", 2)  # verdicts do not use the intervals
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(300):
        sides = [{("e", n): random_run(rng) for n in (1, 2, 4, 8)} for _ in range(2)]
        alarms += bool(set(compare(*sides, least=0)["verdict"]) - {NOISE})
    # Binomial: 300 at 5 % is 15, 25 or more has a chance of 1 %.
    assert alarms <= 25


@pytest.mark.parametrize(("slower", "verdict"), [(1.3, WORSE), (1 / 1.3, BETTER)])
def test_a_real_change_is_found(slower, verdict):
    rng = np.random.default_rng(2)
    table = compare({RUN: random_run(rng)}, {RUN: random_run(rng, slower=slower)})
    assert of(table, "s", "compute_s")["verdict"] == of(table, "s", "span_s")["verdict"] == verdict
    row = of(table, "s", "compute_s")
    assert row["difference_lo"] < 0.1 * (slower - 1) < row["difference_hi"]


def test_a_change_that_is_sure_but_small_does_not_count():
    before, after = {RUN: iterations([100, 100], [90, 90], [5, 5])}, {RUN: iterations([101, 101], [91, 91], [5, 5])}
    assert of(compare(before, after), "s", "span_s")["verdict"] == NOISE
    assert of(compare(before, after, least=0.01), "s", "span_s")["verdict"] == WORSE


def test_one_iteration_or_nothing_computed_is_unknown():
    one = {RUN: iterations([1], [1], [0])}
    assert set(compare(one, {RUN: iterations([2], [2], [0])})["verdict"]) == {UNTESTED}
    idle = {RUN: iterations([1, 2], [0, 0], [1, 2]).assign(compute_max_s=0)}
    table = compare(idle, idle)
    assert of(table, "s", "load_balance")["verdict"] == UNTESTED
    assert of(table, "s", "span_s")["verdict"] == NOISE


def test_the_pseudo_values_of_a_mean_are_its_values():
    times = np.arange(20.0).reshape(4, 5)
    pseudo = comparing._pseudo_values(comparing._statistic(times, COMPARED_TIMES), 4)
    np.testing.assert_allclose(pseudo, times.T)


@pytest.mark.parametrize("other", [{("e", 4): iterations([1], [1], [0])}, {RUN: iterations([1], [1], [0], "t")}])
def test_what_does_not_compare_is_refused(other):
    with pytest.raises(TrisectError, match=r"compare the same|sections must agree"):
        compare({RUN: iterations([1], [1], [0])}, other)
