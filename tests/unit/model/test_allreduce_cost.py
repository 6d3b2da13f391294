"""Paces from lines: which line a count takes, by hand; and from a probe's fits."""

import pandas as pd
import pytest

from trisect.model.allreduce_cost import FittedLine, lines_of, of_lines

INSIDE_2 = FittedLine(2, 4, "ring", 10e-6, 40.0)
INSIDE_4 = FittedLine(4, 4, "ring", 60e-6, 120.0)
TWO_NODES = FittedLine(8, 4, "tree", 0.0, 17.0)
SIX_NODES = FittedLine(24, 4, "ring", 46e-6, 10.0)


def all_reduce(lines, gpus):
    return of_lines(lines, lambda _: 4)(gpus)


@pytest.mark.parametrize(
    ("gpus", "line"),
    [(1, INSIDE_2), (2, INSIDE_2), (3, INSIDE_2), (4, INSIDE_4), (8, TWO_NODES), (16, TWO_NODES), (64, SIX_NODES)],
)
def test_the_nearest_line_over_the_same_route_that_is_not_larger(gpus, line):
    found = all_reduce([SIX_NODES, INSIDE_4, TWO_NODES, INSIDE_2], gpus)
    assert (found.algorithm, found.between_gb_per_s) == (line.algorithm, line.gb_per_s)
    assert found.inside_gb_per_s == (float("inf") if gpus > 4 else line.gb_per_s)


def test_a_larger_one_where_none_is_smaller_and_the_other_route_where_there_is_no_line():
    assert all_reduce([SIX_NODES], 8).between_gb_per_s == 10
    assert all_reduce([INSIDE_2], 64).between_gb_per_s == 40
    assert all_reduce([TWO_NODES], 2).inside_gb_per_s == 17


def test_a_line_is_met_at_its_own_count_and_alpha_goes_by_the_step():
    at_4, at_8 = (all_reduce([INSIDE_4], gpus).transfer_s(8e9) for gpus in (4, 8))
    assert at_4 == pytest.approx(60e-6 + 1.5 * 8 / 120)
    assert at_8 == pytest.approx(60e-6 * 14 / 6 + 1.75 * 8 / 120)
    assert all_reduce([INSIDE_4], 4).transfer_s(8e9, 3) - at_4 == pytest.approx(2 * 60e-6)


def test_a_probe_gives_what_was_chosen_by_the_fastest_protocol():
    fits = pd.DataFrame(
        [
            (2, 1, "chosen", "ring", "ring", 5e-6, 10.0),
            (2, 1, "chosen", "ring", "ring", 20e-6, 40.0),
            (2, 1, "tree", "tree", "tree", 1e-6, 99.0),
            (8, 2, "chosen", "tree", "tree", 30e-6, 17.0),
            (16, 4, "chosen", "unknown", "ring", 50e-6, 10.0),
            (16, 4, "chosen", "unknown", "tree", 50e-6, 11.0),
        ],
        columns=["gpus", "nodes", "algorithm", "ran", "reading", "alpha_s", "gb_per_s"],
    ).assign(oversubscribed=False)
    assert lines_of(fits) == [
        FittedLine(2, 2, "ring", 20e-6, 40.0),
        FittedLine(8, 4, "tree", 30e-6, 17.0),
        FittedLine(16, 4, "ring", 50e-6, 10.0),
    ]
    assert lines_of(fits[fits["algorithm"] != "chosen"]) == []
    shared = fits.assign(oversubscribed=fits["gpus"] > 2)
    assert [line.gpus for line in lines_of(shared)] == [2]
    assert [line.gpus for line in lines_of(shared[shared["gpus"] > 2])] == [8, 16]
