"""What is said about implied rates: each rule at its threshold, from tables that were made to meet it or not."""

import math

import pandas as pd
import pytest

from trisect.network.implied_rates import HIDDEN, rate_notes
from trisect.results.notes import note
from trisect.results.tables import RATES


def rates(*rows):
    """Rows of rates.csv from what differs between them."""
    plain = {"experiment": "e", "section": "denoiser", "gpus": 8, "route": "between", "algorithm": "ring"}
    plain |= {"reading": "ring", "sent_bytes": 1e9, "transfer_s": 0.1, "gb_per_s": 10.0, "gb_per_s_lo": 9.9}
    plain |= {"gb_per_s_hi": 10.1, "machine_gb_per_s": 10.5, "probed_gb_per_s": math.nan, "fitted_at": 8, "off": 0.0}
    plain |= {"hidden_s": 0.0, "iterations": 10, "oversubscribed": False, "cut_lines": 0}
    return pd.DataFrame([plain | row for row in rows])[list(RATES)]


def test_nothing_is_said_of_a_rate_below_the_machine_s_with_its_algorithm_known():
    assert rate_notes(rates({})) == []


def test_one_rate_predicts_the_counts_that_were_held_out():
    table = rates({}, {"gpus": 16, "off": 0.02}, {"gpus": 32, "off": -0.061})
    about = {"section": "denoiser", "assumed": "ring", "fitted_at": 8, "gb_per_s": 10.0}
    assert rate_notes(table) == [note("rate_holds", **about, worst=0.061, counts=[16, 32])]


@pytest.mark.parametrize(("lowest", "said"), [(10.5, 0), (10.51, 1), (math.nan, 1)])
def test_a_rate_is_above_the_machine_s_when_its_whole_interval_is(lowest, said):
    assert len(rate_notes(rates({"gb_per_s": 11.0, "gb_per_s_lo": lowest}))) == said


ABOVE = {"gb_per_s": 20.0, "gb_per_s_lo": 19.0, "gb_per_s_hi": 21.0}
NO_REASON = {"hidden_share": None, "other": None, "other_gb_per_s": None}


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([{"hidden_s": HIDDEN * 0.1}], {"hidden_share": pytest.approx(HIDDEN / (1 + HIDDEN))}),
        ([{"hidden_s": 0.99 * HIDDEN * 0.1}], {}),
        (
            [{"algorithm": "unknown"}, {"algorithm": "unknown", "reading": "tree", "gb_per_s": 5, "gb_per_s_lo": 4}],
            {"other": "tree", "other_gb_per_s": 5.0},
        ),
    ],
)
def test_a_rate_above_the_machine_s_is_explained_and_not_clipped(rows, why):
    said = rate_notes(rates(*[ABOVE | row for row in rows]))[0]
    about = {"section": "denoiser", "gpus": 8, "assumed": "ring", "gb_per_s": 20.0, "machine_gb_per_s": 10.5}
    assert said.kind == "rate_above"
    assert said.values == about | NO_REASON | why


def test_algorithms_that_agree_are_explained_once():
    """Inside a node ring and tree send the same."""
    both = [ABOVE | {"algorithm": "unknown", "route": "inside", "reading": how} for how in ("ring", "tree")]
    assert [one.kind for one in rate_notes(rates(*both))].count("rate_above") == 1


def test_unknown_algorithms_and_cut_lines_are_said_once_a_count():
    table = rates({"algorithm": "unknown", "cut_lines": 3}, {"algorithm": "unknown", "reading": "tree", "cut_lines": 3})
    assert rate_notes(table) == [note("algorithm_unknown", counts=[8]), note("log_cut", gpus=8, lines=3)]


def test_an_empty_table_says_why():
    assert rate_notes(rates({}).iloc[:0]) == [note("nothing_moves")]
