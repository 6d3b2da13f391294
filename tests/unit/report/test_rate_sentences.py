"""What is said about implied rates: each rule at its threshold, from tables that were made to meet it or not."""

import math

import pandas as pd
import pytest

from trisect.report.text.rate_sentences import HIDDEN, sentences


def rates(*rows):
    """Rows of rates.csv from what differs between them."""
    plain = {"experiment": "e", "section": "denoiser", "gpus": 8, "route": "between", "algorithm": "ring"}
    plain |= {"reading": "ring", "sent_bytes": 1e9, "transfer_s": 0.1, "gb_per_s": 10.0, "gb_per_s_lo": 9.9}
    plain |= {"gb_per_s_hi": 10.1, "machine_gb_per_s": 10.5, "probed_gb_per_s": math.nan, "fitted_at": 8, "off": 0.0}
    plain |= {"hidden_s": 0.0, "iterations": 10, "oversubscribed": False, "cut_lines": 0}
    return pd.DataFrame([plain | row for row in rows])


def test_nothing_is_said_of_a_rate_below_the_machine_s_with_its_algorithm_known():
    assert sentences(rates({})) == []


def test_one_rate_predicts_the_counts_that_were_held_out():
    table = rates({}, {"gpus": 16, "off": 0.02}, {"gpus": 32, "off": -0.061})
    assert sentences(table) == [
        "denoiser: 10.0 GB/s between nodes, fitted at 8 alone and read as a ring, gives the transfer at 16 and 32 "
        "within 6.1 %."
    ]


@pytest.mark.parametrize(("lowest", "said"), [(10.5, 0), (10.51, 1), (math.nan, 1)])
def test_a_rate_is_above_the_machine_s_when_its_whole_interval_is(lowest, said):
    assert len(sentences(rates({"gb_per_s": 11.0, "gb_per_s_lo": lowest}))) == said


ABOVE = {"gb_per_s": 20.0, "gb_per_s_lo": 19.0, "gb_per_s_hi": 21.0}


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([{"hidden_s": HIDDEN * 0.1}], "Up to 4.8 % of the communication runs under compute"),
        (
            [{"hidden_s": 0.99 * HIDDEN * 0.1}],
            "Fewer bytes moved over that route than the byte rule has, or the file's",
        ),
        (
            [{"algorithm": "unknown"}, {"algorithm": "unknown", "reading": "tree", "gb_per_s": 5, "gb_per_s_lo": 4}],
            "If it was a tree, fewer bytes moved, and the rate is 5.00 GB/s.",
        ),
    ],
)
def test_a_rate_above_the_machine_s_is_explained_and_not_clipped(rows, why):
    said = sentences(rates(*[ABOVE | row for row in rows]))[0]
    assert said.startswith("denoiser at 8, read as a ring: 20.0 GB/s is above the 10.5 GB/s of the machine's file. ")
    assert why in said


def test_readings_that_agree_are_explained_once():
    """Inside a node ring and tree send the same."""
    both = [ABOVE | {"algorithm": "unknown", "route": "inside", "reading": how} for how in ("ring", "tree")]
    assert sum("above" in sentence for sentence in sentences(rates(*both))) == 1


def test_unknown_algorithms_and_cut_lines_are_said_once_a_count():
    table = rates({"algorithm": "unknown", "cut_lines": 3}, {"algorithm": "unknown", "reading": "tree", "cut_lines": 3})
    assert sentences(table, "rank") == [
        "No NCCL log says which algorithm ran at 8 ranks: the rate is one of the two readings.",
        "3 lines of the NCCL logs at 8 ranks were cut and are left out.",
    ]


def test_an_empty_table_says_why():
    assert sentences(rates({}).iloc[:0], "rank") == ["No section at 2 or more ranks moves a known payload."]
