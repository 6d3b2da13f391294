"""Figures and tables of data movement and predictions: what is drawn and said is what the tables hold."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import fabricated
import pandas as pd
import pytest
from matplotlib.axes import Axes

from trisect.report.figures import movement_figures
from trisect.report.figures.draw import draw
from trisect.report.figures.prediction_figures import predicted
from trisect.report.sections.movement import movement_view
from trisect.report.sections.predictions import predictions_view
from trisect.results.notes import note
from trisect.results.tables import TOTAL


def of(table: pd.DataFrame, experiment: str) -> pd.DataFrame:
    return table[table["experiment"] == experiment]


def marks(axes: Axes) -> list[tuple[float, float, str]]:
    """Drawn points: x, y, marker."""
    points = [line for line in axes.lines if line.get_linestyle() == "None" and line.get_marker() != "."]
    return [(float(line.get_xdata()[0]), float(line.get_ydata()[0]), line.get_marker()) for line in points]


def lines(axes: Axes) -> list[list[float]]:
    return [list(line.get_ydata()) for line in axes.lines if line.get_linestyle() != "None"]


def titles(svg: str) -> list[str]:
    return [title.text or "" for title in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}title")]


@pytest.fixture(scope="module")
def rates(cluster: pd.DataFrame) -> pd.DataFrame:
    return fabricated.rates(cluster)


def test_transfers_are_points_with_the_algorithm_and_bytes_over_the_machine_s_rate_is_the_line(
    rates: pd.DataFrame,
) -> None:
    axes = movement_figures.transfer_bytes(rates).axes[0]
    known = of(rates, "inference_2d")
    assert {round(y, 12) for _, y, _ in marks(axes)} == {round(y, 12) for y in known["transfer_s"]}
    assert [marker for _, _, marker in marks(axes)] == ["o", "o", "^", "o", "o", "o"] * 2  # 2 to 64, a tree at 8
    gradient = known[known["section"] == "gradient"]
    expected = gradient["sent_bytes"] / (gradient["machine_gb_per_s"] * 1e9)
    assert lines(axes)[0] == pytest.approx(list(expected))
    assert "machine's file" in axes.get_xlabel()


def test_intervals_of_a_transfer_are_those_of_the_measurement(rates: pd.DataFrame, cluster: pd.DataFrame) -> None:
    axes = movement_figures.transfer_bytes(of(rates, "inference_2d")).axes[0]
    drawn = sorted(float(part.get_segments()[0][0][1]) for part in axes.collections)
    measured = of(cluster, "inference_2d")
    measured = measured[(measured["section"] != TOTAL) & (measured["gpus"] > 1)]
    assert drawn == pytest.approx(sorted(measured["transfer_s_lo"]))


def test_an_unknown_algorithm_has_a_line_by_each_reading(rates: pd.DataFrame) -> None:
    axes = movement_figures.transfer_bytes(of(rates, "inference_3d")).axes[0]
    assert {marker for _, _, marker in marks(axes)} == {"s"}
    rings, trees = lines(axes)[:2]
    assert rings[:2] == trees[:2]  # inside a node they send the same
    assert all(ring != tree for ring, tree in zip(rings[2:], trees[2:], strict=True))


@pytest.mark.parametrize(
    ("change", "source"),
    [
        ({}, "machine"),
        ({"machine_gb_per_s": math.nan}, "probed"),
        ({"machine_gb_per_s": math.nan, "probed_gb_per_s": math.nan}, "fitted"),
    ],
)
def test_the_rate_to_compare_with_is_the_machine_s_then_the_probe_s_then_the_fitted_one(
    rates: pd.DataFrame, change: dict[str, float], source: str
) -> None:
    rows = of(rates, "inference_2d").assign(**change)
    rate, said = movement_figures.expected_rate(rows)
    assert said == source
    if source == "fitted":
        expected = (rows["sent_bytes"] / (rate * 1e9)).to_numpy()
        assert expected == pytest.approx((rows["transfer_s"] / (1 + rows["off"])).to_numpy())


def test_on_one_machine_alone_there_is_nothing_to_compare_with(laptop: pd.DataFrame) -> None:
    table = fabricated.rates(laptop, per_node=99)
    assert movement_figures.expected_rate(of(table, "inference_2d"))[1] == ""
    assert movement_figures.transfer_bytes(table) == note("no_rate_to_compare")


def test_an_experiment_without_a_rate_says_so_below_its_panel(rates: pd.DataFrame) -> None:
    """Beside one that has a rate, which makes the figure worth drawing."""
    inside = rates[(rates["experiment"] == "inference_2d") & (rates["gpus"] == 2)]
    unknown = inside.assign(experiment="alone", machine_gb_per_s=math.nan, probed_gb_per_s=math.nan)
    axes = movement_figures.transfer_bytes(pd.concat([rates, unknown], ignore_index=True)).axes[-1]
    assert "none to compare with" in axes.get_xlabel()
    assert not any(values and not all(map(math.isnan, values)) for values in lines(axes))


def test_a_panel_per_route_with_rates_to_compare_with(rates: pd.DataFrame) -> None:
    figure = movement_figures.implied_rate(of(rates, "inference_2d"))
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "inference_2d\ninside a node",
        "inference_2d\nbetween nodes",
    ]
    between = figure.axes[1]
    assert {(round(y, 6), marker) for _, y, marker in marks(between)} == {(17.0, "^"), (10.5, "o")}
    references = [part for part in between.collections if part.get_segments()[0][0][1] == part.get_segments()[0][1][1]]
    heights = {round(float(part.get_segments()[0][0][1]), 6) for part in references}
    assert heights == {17.0, 10.5, 18.7, 11.55}  # the file's, and the probe's, which is a tenth above


def test_a_rate_without_an_upper_end_is_drawn_to_the_edge(rates: pd.DataFrame) -> None:
    open_ = rates.assign(gb_per_s_hi=math.inf)
    for axes in movement_figures.implied_rate(of(open_, "inference_2d")).axes:
        top = axes.get_ylim()[1]
        assert top < 1000
        assert any(part.get_segments()[0][1][1] > top for part in axes.collections)
    shown = titles(draw("implied_rate", open_)) + titles(draw("transfer_bytes", open_))
    assert "inference_2d, denoiser, 8 GPUs: 17.0 GB/s (16.2 or more) between nodes, by tree, 10 iterations" in shown


def test_readings_that_send_the_same_are_one_point(rates: pd.DataFrame) -> None:
    inside, between = movement_figures.implied_rate(of(rates, "inference_3d")).axes
    assert [marker for _, _, marker in marks(inside)] == ["s"] * 4  # 2 counts of 2 sections
    assert sorted(marker for _, _, marker in marks(between)) == ["D"] * 8 + ["s"] * 8


def test_values_of_rates_show_on_hover(rates: pd.DataFrame) -> None:
    shown = titles(draw("implied_rate", rates))
    assert "inference_2d, denoiser, 8 GPUs: 17.0 GB/s (16.2 to 17.9) between nodes, by tree, 10 iterations" in shown
    assert "inference_2d, 8 GPUs: 17.0 GB/s by the machine's file, as a tree" in shown
    assert any("algorithm unknown, counted as a tree" in title for title in shown)
    of_transfer = titles(draw("transfer_bytes", rates))
    assert any("805 MB at the rate of the machine's file: 47.4 ms; by tree" in title for title in of_transfer)


def test_where_nothing_moves_the_figure_says_so(rates: pd.DataFrame) -> None:
    for name in ("transfer_bytes", "implied_rate"):
        assert "No section at 2 or more ranks moves a known payload." in draw(name, rates.iloc[:0], "rank")


def test_predictions_are_lines_and_measurements_points_fitted_ones_as_squares(cluster: pd.DataFrame) -> None:
    table = fabricated.prediction(cluster)
    total = table[(table["section"] == TOTAL) & (table["experiment"] == "inference_2d")].sort_values("gpus")
    figure = predicted(table)
    seconds, efficiency = figure.axes[0], figure.axes[4]
    assert lines(seconds)[0] == pytest.approx(list(total["compute_s"]))
    assert len(lines(seconds)[0]) == 11  # to 1,024
    measured = total[total["measured_parallel_efficiency"].notna()]
    drawn = marks(efficiency)
    assert [y for _, y, _ in drawn] == pytest.approx(list(measured["measured_parallel_efficiency"]))
    assert [marker for _, _, marker in drawn] == ["s", "s", "o", "o", "o", "o", "o"]
    intervals = [part.get_segments()[0][:, 1] for part in efficiency.collections]
    assert intervals == pytest.approx(
        measured[[f"measured_parallel_efficiency_{end}" for end in ("lo", "hi")]].to_numpy()
    )
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [
        "compute, modelled",
        "transfer, modelled",
        "wait, modelled",
        "measured, fitted",
        "measured, held out",
    ]
    shown = titles(draw("predicted", table))
    assert any(title.endswith("modelled (+4.0 %), held out") for title in shown)
    assert any(title.startswith("inference_2d, all sections, 1024 GPUs: compute ") for title in shown)


def test_errors_of_a_prediction_stand_in_the_table_at_measured_counts_only(cluster: pd.DataFrame) -> None:
    (view,) = predictions_view(fabricated.material(of(cluster, "inference_2d")))
    assert [row.gpus for row in view["errors"].rows] == [1, 2, 4, 8, 16, 32, 64]
    assert view["errors"].titles == ["span", "compute", "transfer", "wait", "parallel efficiency", "cost"]
    row = view["errors"].rows[-1]
    assert row.names == ["held out"]
    assert [cell.shown for cell in row.cells[1:4]] == ["+4.0 %", "-10 %", "-10 %"]
    assert row.cells[1].spread == "307 ms for 295 ms"
    assert len(view["all"].rows) == 11 * 3


def test_one_rate_is_held_against_the_counts_where_it_was_not_found(cluster: pd.DataFrame) -> None:
    grid, unknown = (view["grid"] for view in movement_view(fabricated.material(cluster))["rates"][:2])
    off = {row.gpus: row.cells[grid.titles.index("transfer against one rate")].value for row in grid.rows}
    assert [n for n, value in off.items() if value] == [32, 64]
    assert {row.gpus: row.names[-1] for row in grid.rows}[8] == "tree"
    named = [row.names[-1] for row in unknown.rows if row.gpus == 8]
    assert named == ["unknown, as a ring", "unknown, as a tree"] * 2


def test_columns_of_rates_that_nothing_is_known_of_are_left_out(laptop: pd.DataFrame) -> None:
    view = movement_view(fabricated.laptop_material(laptop, fits=None))
    grid = view["rates"][0]["grid"]
    assert grid.titles == ["bytes sent", "transfer", "implied rate"]
    assert [row.names for row in grid.rows[:2]] == [
        ["gradient", "inside", "unknown"],
        ["denoiser", "inside", "unknown"],
    ]
    assert [row.oversubscribed for row in grid.rows] == [row.gpus == 4 for row in grid.rows]
    assert view["fits"] is None
