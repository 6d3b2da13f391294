"""The heat map shows each rank's compute where it belongs, and says which rank is late most often."""

from __future__ import annotations

import fabricated
import numpy as np
import pandas as pd
import pytest

from trisect.analysis.baseline import largest_fair_counts
from trisect.errors import TrisectError
from trisect.report.figures import rank_figures
from trisect.report.figures.draw import draw

CASES = {
    "always": ([[1, 1, 1], [2, 2, 2]], "slowest: rank 1 in 3 of 3"),
    "by chance": ([[2, 1, 1], [1, 2, 1], [1, 1, 2]], "slowest: rank 0 in 1 of 3"),
    "alone": ([[1, 2, 3]], "one rank"),
}


def ranks(compute_s: list[list[float]], **changes: object) -> pd.DataFrame:
    """A job's table from rows of ranks and columns of iterations, which start at 3."""
    rows = [(rank, t + 3, value) for rank, values in enumerate(compute_s) for t, value in enumerate(values)]
    table = pd.DataFrame(rows, columns=["rank", "iteration", "compute_s"])
    return table.assign(
        **{"experiment": "e", "gpus": len(compute_s), "oversubscribed": False, "section": "s"} | changes
    )


@pytest.mark.parametrize("case", CASES)
def test_cells_are_compute_over_the_mean_and_the_slowest_is_named(case: str) -> None:
    compute, said = CASES[case]
    axes = rank_figures.rank_compute(ranks(compute)).axes[0]
    drawn = np.array([np.ravel(mesh.get_array()) for mesh in axes.collections])
    np.testing.assert_allclose(drawn, np.array(compute) / np.mean(compute))
    assert axes.get_xlabel() == f"iteration\n{said}"
    assert axes.get_title(loc="left") == f"e at {len(compute)}\ns"


def test_values_and_the_run_show_on_hover() -> None:
    svg = draw("rank_compute", ranks([[1, 1], [2, 4]], oversubscribed=True))
    hover = "e, s, 2 GPUs: rank 1 computes 3.00 s per iteration, 1.0 to 2.0 times the section&#x27;s mean"
    assert f'<g data-experiment="e" data-section="s"><title>{hover}, oversubscribed</title>' in svg
    assert "oversubscribed" in rank_figures.rank_compute(ranks([[1]], oversubscribed=True)).axes[0].get_title(
        loc="left"
    )


def test_far_outliers_end_at_the_pointed_end_of_the_scale() -> None:
    mesh = rank_figures.rank_compute(ranks([[1, 1, 1], [1, 1, 9]])).axes[0].collections[0]
    assert (mesh.norm.vmin, mesh.norm.vmax) == (0, 2)
    near = rank_figures.rank_compute(ranks([[1, 1, 1], [1, 1, 1]])).axes[0].collections[0]
    assert (near.norm.vmin, near.norm.vmax) == (0.95, 1.05)  # noise of a percent must not look like a difference
    fast = rank_figures.rank_compute(ranks([[0.9, 1], [1.05, 1.05]])).axes[0].collections[0]
    assert (fast.norm.vmin, fast.norm.vmax) == (pytest.approx(0.9), pytest.approx(1.1))  # 1 stays in the middle


def test_the_mean_is_neutral() -> None:
    """The middle of the scale is grey, and its two ends are of different hues."""
    low, middle, high = (rank_figures.COLOURS(value)[:3] for value in (0.0, 0.5, 1.0))
    assert max(middle) - min(middle) < 0.01
    assert low[1] > low[0]
    assert high[0] > high[1]


def test_a_section_without_compute_is_drawn() -> None:
    assert draw("rank_compute", ranks([[0, 0], [0, 0]])).endswith("</svg>\n")


def test_the_largest_count_with_cores_of_its_own_is_shown(laptop: pd.DataFrame) -> None:
    assert largest_fair_counts(laptop) == {"inference_2d": 2, "training_2d": 2}
    assert largest_fair_counts(laptop.assign(oversubscribed=True)) == {"inference_2d": 4, "training_2d": 4}


def test_a_panel_per_experiment_and_section_and_the_same_bytes(cluster: pd.DataFrame) -> None:
    table = fabricated.ranks(cluster)
    assert len(rank_figures.rank_compute(table).axes) == 8 + 1  # and the colour bar
    svg = draw("rank_compute", table)
    assert svg == draw("rank_compute", table.copy())
    assert len(svg) < 1_000_000  # four experiments at 64 ranks


def test_a_table_without_ranks_is_refused() -> None:
    with pytest.raises(TrisectError, match="figure rank_compute: the ranks table has no column rank;"):
        draw("rank_compute", ranks([[1]]).drop(columns="rank"))
