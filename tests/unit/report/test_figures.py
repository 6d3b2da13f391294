"""What is drawn is what the table holds."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import fabricated
import matplotlib.colors
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trisect.errors import TrisectError
from trisect.report.catalogue import CATALOGUE, drawn_from
from trisect.report.figures import scaling_figures, style
from trisect.results.tables import TOTAL

REPO = Path(__file__).parents[3]


def marks(axes: Axes) -> dict[tuple[float, float], bool]:
    """Drawn points of an axes: (x, y) to whether the marker is hollow."""
    points = [line for line in axes.lines if line.get_linestyle() == "None"]
    return {
        (float(line.get_xdata()[0]), float(line.get_ydata()[0])): line.get_markerfacecolor() == "white"
        for line in points
    }


def intervals(axes: Axes) -> set[tuple[float, float, float]]:
    """Vertical lines of an axes: x, lower end, upper end."""
    segments = [segment for drawn in axes.collections for segment in drawn.get_segments()]
    return {(float(low[0]), float(low[1]), float(high[1])) for low, high in segments}


def legend_labels(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def panel(figure: Figure, title: str) -> Axes:
    return next(axes for axes in figure.axes if axes.get_title(loc="left") == title)


def of(scaling: pd.DataFrame, experiment: str, section: str | None = None) -> pd.DataFrame:
    rows = scaling[scaling["experiment"] == experiment]
    return rows if section is None else rows[rows["section"] == section]


@pytest.mark.parametrize(
    "column", ["load_balance", "comm_efficiency", "transfer_efficiency", "serialization_efficiency"]
)
def test_efficiency_figures_draw_every_section_and_the_total(cluster: pd.DataFrame, column: str) -> None:
    figure = scaling_figures.DRAW[column](cluster)
    rows = of(cluster, "inference_2d")
    axes = panel(figure, "inference_2d")
    assert set(marks(axes)) == set(zip(rows["gpus"].astype(float), rows[column], strict=True))
    assert intervals(axes) == set(
        zip(rows["gpus"].astype(float), rows[f"{column}_lo"], rows[f"{column}_hi"], strict=True)
    )
    assert legend_labels(figure) == ["gradient", "denoiser", "forward", "backward", "combined"]


def test_an_efficiency_above_one_is_not_cut_off(cluster: pd.DataFrame) -> None:
    more = cluster.assign(serialization_efficiency_hi=1.3)
    assert scaling_figures.serialization_efficiency(more).axes[0].get_ylim()[1] > 1.3


def test_cost_bars_are_parts_that_add_up_to_cost(cluster: pd.DataFrame) -> None:
    figure = scaling_figures.cost(cluster)
    bars = panel(figure, "training_3d").patches
    total = of(cluster, "training_3d", TOTAL)
    assert len(bars) == 3 * len(total)
    tops = {bar.get_x() + bar.get_width() / 2: bar.get_y() + bar.get_height() for bar in bars}  # the last: the top one
    assert list(tops.values()) == pytest.approx(list(total["cost"]))
    heights = [bar.get_height() for bar in bars[1::3]]
    assert heights == pytest.approx(list(total["gpus"] * total["transfer_s"] / (4 * total["span_s"].iloc[0])))
    assert "ideal: 1" in legend_labels(figure)
    assert any(list(line.get_ydata()) == [1, 1] for line in panel(figure, "training_3d").lines)


def test_times_are_seconds_on_log_axes_with_3d_dashed(cluster: pd.DataFrame) -> None:
    figure = scaling_figures.times(cluster)
    axes = panel(figure, "compute")
    rows = cluster[cluster["experiment"].str.startswith("inference") & (cluster["section"] != TOTAL)]
    assert set(marks(axes)) == set(zip(rows["gpus"].astype(float), rows["compute_s"], strict=True))
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    lines = [line for line in axes.lines if line.get_linestyle() != "None"]
    assert [line.get_linestyle() for line in lines] == ["-", "-", "--", "--"]
    assert legend_labels(figure)[-2:] == ["inference_2d, training_2d", "inference_3d, training_3d"]


def test_a_zero_is_left_off_the_log_axis_and_said(laptop: pd.DataFrame) -> None:
    axes = panel(scaling_figures.times(laptop), "wait")
    assert not any(x == 1 for x, _ in marks(axes))
    assert axes.get_title(loc="right") == "zero at 1 GPU: not drawn"


def test_an_interval_that_reaches_zero_stays_on_the_log_axis(laptop: pd.DataFrame) -> None:
    changed = laptop.assign(wait_s_lo=0.0)
    axes = panel(scaling_figures.times(changed), "wait")
    assert intervals(axes)
    assert all(0 < low < high for _, low, high in intervals(axes))


@pytest.mark.parametrize(
    ("transfer", "meet"),
    [((0, 0.2, 0.2, 0.2), 5.0), ((0, 0, 0, 0), None), ((0, 1, 1, 1), 2.0)],
)
def test_compute_and_transfer_meet(transfer: tuple[float, ...], meet: float | None) -> None:
    """Compute is 1/n; a constant transfer of 0.2 meets it at 5 GPUs, exactly so on logarithmic axes."""
    counts = (1, 2, 4, 8)
    total = pd.DataFrame({"gpus": counts, "compute_max_s": [1 / n for n in counts], "transfer_s": transfer})
    assert scaling_figures.meeting(total) == (None if meet is None else pytest.approx(meet))


def test_the_published_race_is_not_yet_over(cluster: pd.DataFrame) -> None:
    """In 2D inference, compute of the slowest rank is just above transfer at 64; oversubscribed points do not count."""
    axes = panel(scaling_figures.crossing(cluster), "inference_2d")
    assert axes.get_title(loc="right") == "do not meet"
    total = of(cluster, "inference_2d", TOTAL)
    assert {(64.0, total["compute_max_s"].iloc[-1]), (64.0, total["transfer_s"].iloc[-1])} <= set(marks(axes))
    slow = cluster.assign(transfer_s=cluster["transfer_s"].where(cluster["gpus"] < 64, 9.0))
    assert panel(scaling_figures.crossing(slow), "inference_2d").get_title(loc="right").startswith("meet at ")
    shared = slow.assign(oversubscribed=slow["gpus"] == 64)
    assert panel(scaling_figures.crossing(shared), "inference_2d").get_title(loc="right") == "do not meet"


def test_wait_ratio_divides_wait_by_compute_with_outer_bounds(laptop: pd.DataFrame) -> None:
    axes = panel(scaling_figures.wait_ratio(laptop), "inference_2d")
    row = of(laptop, "inference_2d", "denoiser").set_index("gpus").loc[2]
    assert (2.0, row["wait_s"] / row["compute_s"]) in marks(axes)
    assert row["wait_s"] / row["compute_s"] == pytest.approx(0.1)  # 0.02 s over 0.2 s
    lo, hi = row["wait_s_lo"] / row["compute_s_hi"], row["wait_s_hi"] / row["compute_s_lo"]
    assert (2.0, lo, hi) in intervals(axes)


@pytest.mark.parametrize("section", ["gradient", "denoiser"])
def test_wait_causes_of_each_section_add_up_to_its_wait(laptop: pd.DataFrame, section: str) -> None:
    axes = panel(scaling_figures.wait_causes(laptop), f"inference_2d\n{section}")
    rows = of(laptop, "inference_2d", section)
    tops = {bar.get_x() + bar.get_width() / 2: bar.get_y() + bar.get_height() for bar in axes.patches}
    assert list(tops.values()) == pytest.approx(list(rows["wait_s"] / rows["compute_s"]))


def test_unknown_causes_are_not_drawn(laptop: pd.DataFrame) -> None:
    unknown = laptop.assign(wait_imbalance_s=math.nan, wait_jitter_s=math.nan, wait_late_start_s=math.nan)
    assert not any(axes.patches for axes in scaling_figures.wait_causes(unknown).axes)


@pytest.mark.parametrize("name", drawn_from("scaling"))
def test_oversubscribed_points_are_hollow_and_the_legend_says_so(
    name: str, laptop: pd.DataFrame, cluster: pd.DataFrame
) -> None:
    figure = scaling_figures.DRAW[name](laptop)
    assert "hollow: oversubscribed, more ranks than cores" in legend_labels(figure)
    hollow = {x: value for axes in figure.axes for (x, _), value in marks(axes).items()}
    if hollow:
        assert hollow == {1.0: False, 2.0: False, 4.0: True} or hollow == {2.0: False, 4.0: True}
    for axes in figure.axes:
        for bar in axes.patches:
            at_four = bar.get_x() + bar.get_width() / 2 == pytest.approx(2)  # the third bar
            assert (matplotlib.colors.to_hex(bar.get_facecolor()) == "#ffffff") == at_four
    assert not any("oversubscribed" in label for label in legend_labels(scaling_figures.DRAW[name](cluster)))


@pytest.mark.parametrize("name", drawn_from("scaling"))
def test_no_interval_is_drawn_where_there_is_none(name: str, laptop: pd.DataFrame) -> None:
    bounds = [column for column in laptop if column.endswith(("_lo", "_hi"))]
    figure = scaling_figures.DRAW[name](laptop.assign(**dict.fromkeys(bounds, math.nan)))
    assert not any(intervals(axes) for axes in figure.axes)


@pytest.mark.parametrize("name", drawn_from("scaling"))
def test_one_experiment_at_one_count_is_drawn(name: str, laptop: pd.DataFrame) -> None:
    one = of(laptop, "inference_2d")
    assert scaling_figures.draw(name, one[one["gpus"] == 1]).endswith("</svg>\n")


def test_the_same_table_gives_the_same_bytes(laptop: pd.DataFrame, drawings: dict[str, str], tmp_path: Path) -> None:
    for name in drawn_from("scaling"):
        drawing = drawings[name]
        scaling_figures.save(name, laptop.copy(), tmp_path / f"{name}.svg")
        assert (tmp_path / f"{name}.svg").read_text() == drawing
    assert not list(tmp_path.glob("*.partial"))


def test_svg_has_real_text_and_values_on_hover(drawings: dict[str, str]) -> None:
    root = ElementTree.fromstring(drawings["load_balance"])
    space = "{http://www.w3.org/2000/svg}"
    assert "load balance" in {text.text for text in root.iter(f"{space}text")}
    titles = [title.text or "" for title in root.iter(f"{space}title")]
    assert "inference_2d, gradient, 2 GPUs: load balance 80 % (79 % to 81 %), 3 iterations" in titles
    assert any(
        title.endswith("4 GPUs: load balance 57 % (57 % to 58 %), 3 iterations, oversubscribed") for title in titles
    )
    tagged = {group.get("data-section") for group in root.iter(f"{space}g")}
    assert {"gradient", "denoiser", "forward", "backward", TOTAL} <= tagged


def test_on_cpu_every_axis_and_value_says_ranks(laptop: pd.DataFrame) -> None:
    for name, drawing in fabricated.drawings(laptop, "rank").items():
        assert "GPU" not in drawing, name
    root = ElementTree.fromstring(scaling_figures.draw("cost", laptop, "rank"))
    assert {"ranks", "rank-seconds, relative"} <= {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}


def test_of_many_counts_some_are_named_the_largest_among_them(cluster: pd.DataFrame) -> None:
    axes = scaling_figures.DRAW["predicted"](fabricated.prediction(cluster)).axes[0]
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert len(labels) == 11
    assert [label for label in labels if label] == ["1", "4", "16", "64", "256", "1024"]


def test_names_are_text_not_markup(laptop: pd.DataFrame) -> None:
    name = '<b>"$x^2$" & co</b>'
    svg = scaling_figures.draw("cost", of(laptop, "inference_2d").assign(experiment=name))
    root = ElementTree.fromstring(svg)
    assert name in {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert name in {group.get("data-experiment") for group in root.iter("{http://www.w3.org/2000/svg}g")}


def test_sections_differ_in_grey_too() -> None:
    looks = style.section_looks(fabricated.cluster_scaling())
    assert len({look.marker for look in looks.values()}) == len(looks)
    luminance = [sum(matplotlib.colors.to_rgb(look.colour)) for look in style.PART_LOOKS.values()]
    assert luminance == sorted(luminance)
    assert min(later - before for before, later in pairwise(luminance)) > 0.5


def test_every_figure_has_its_caption_and_no_other_is_there() -> None:
    captions = {path.stem for path in (REPO / "workflow/report").glob("*.rst")}
    assert captions == set(CATALOGUE) | {"timeline"}
    assert set(scaling_figures.DRAW) == set(CATALOGUE)


@pytest.mark.parametrize("change", ["unknown name", "no column", "no row"])
def test_a_bad_request_is_one_clear_line(change: str, laptop: pd.DataFrame) -> None:
    with pytest.raises(TrisectError, match=r"^figure \w+: .*[a-z0-9_]$"):
        if change == "unknown name":
            scaling_figures.draw("costs", laptop)
        elif change == "no column":
            scaling_figures.draw("cost", laptop.drop(columns="cost"))
        else:
            scaling_figures.draw("cost", laptop.iloc[:0])


def test_long_names_break_into_lines_and_every_row_is_labelled(cluster: pd.DataFrame) -> None:
    """Eight experiments make two rows of panels."""
    again = [cluster.assign(experiment=cluster["experiment"] + suffix) for suffix in ("", "_with_a_long_name")]
    figure = scaling_figures.load_balance(pd.concat(again, ignore_index=True))
    assert [axes.get_ylabel() for axes in figure.axes] == ["load balance", "", "", ""] * 2
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[4].replace("\n", "") == "inference_2d_with_a_long_name"
    assert max(len(line) for title in titles for line in title.split("\n")) <= 22
