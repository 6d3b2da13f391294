"""What is drawn is what the table holds."""

from __future__ import annotations

import math
from itertools import pairwise
from xml.etree import ElementTree

import fabricated
import matplotlib.colors
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trisect import wording
from trisect.errors import TrisectError
from trisect.report import page
from trisect.report.catalogue import CATALOGUE, TIMELINE
from trisect.report.figures import efficiency_figures, prediction_figures, scaling_figures, style, svg
from trisect.report.figures.draw import FAMILIES, draw, function_of
from trisect.results.tables import TOTAL, WAIT_CAUSES

OF_SCALING = [name for name, entry in CATALOGUE.items() if entry.table == "scaling"]

SVG = "{http://www.w3.org/2000/svg}"


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


def drawn(name: str, table: pd.DataFrame) -> Figure:
    figure = function_of(name)(table)
    assert isinstance(figure, Figure)
    return figure


def legend_labels(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def panel(figure: Figure, title: str) -> Axes:
    return next(axes for axes in figure.axes if axes.get_title(loc="left") == title)


def of(scaling: pd.DataFrame, experiment: str, section: str | None = None) -> pd.DataFrame:
    rows = scaling[scaling["experiment"] == experiment]
    return rows if section is None else rows[rows["section"] == section]


def test_the_factors_of_an_efficiency_stand_in_one_row(cluster: pd.DataFrame) -> None:
    """A row an experiment, a column a quantity, with every section and the total; the headings read as a formula."""
    figure = efficiency_figures.efficiencies(cluster)
    assert [axes.get_ylabel() for axes in figure.axes[::5]] == list(cluster["experiment"].unique())
    for place, column in enumerate(efficiency_figures.PRODUCTS):
        rows, axes = of(cluster, "inference_2d"), figure.axes[place]
        assert set(marks(axes)) == set(zip(rows["gpus"].astype(float), rows[column], strict=True))
        assert intervals(axes) == set(
            zip(rows["gpus"].astype(float), rows[f"{column}_lo"], rows[f"{column}_hi"], strict=True)
        )
    headings = [axes.get_title(loc="left").replace("\n", " ") for axes in figure.axes[:5]]
    formula = "parallel efficiency = load balance \u00d7 communication, which is serialization efficiency"
    assert " ".join(headings) == f"{formula} \u00d7 transfer efficiency"
    assert legend_labels(figure) == ["gradient", "denoiser", "forward", "backward", "combined"]


def test_an_efficiency_above_one_is_not_cut_off(cluster: pd.DataFrame) -> None:
    more = cluster.assign(serialization_efficiency_hi=1.3)
    assert efficiency_figures.efficiencies(more).axes[0].get_ylim()[1] > 1.3


def test_speedup_is_drawn_with_its_ideal_and_said_below_the_panel(cluster: pd.DataFrame) -> None:
    """training_3d begins at 4, so that 16 times is ideal at 64."""
    axes = panel(scaling_figures.speedup(cluster), "training_3d")
    total = of(cluster, "training_3d", TOTAL)
    assert set(zip(total["gpus"].astype(float), total["speedup"], strict=True)) <= set(marks(axes))
    dashed = axes.lines[-1]
    assert (list(dashed.get_xdata()), list(dashed.get_ydata())) == ([4, 8, 16, 32, 64], [1, 2, 4, 8, 16])
    assert axes.get_xlabel() == "GPUs\n14.8 of 16 at 64"


def test_the_speedup_that_is_said_is_of_a_count_with_cores_of_its_own(laptop: pd.DataFrame) -> None:
    assert panel(scaling_figures.speedup(laptop), "inference_2d").get_xlabel() == "GPUs\n1.73 of 2 at 2"


def test_peak_memory_is_drawn_per_section_where_it_is_known(cluster: pd.DataFrame) -> None:
    figure = scaling_figures.peak_memory(cluster)
    rows = of(cluster, "inference_2d", "gradient")
    drawn = set(zip(rows["gpus"].astype(float), rows["peak_memory_bytes"], strict=True))
    assert drawn <= set(marks(panel(figure, "inference_2d")))
    assert legend_labels(figure) == ["gradient", "denoiser", "forward", "backward"]


NOTHING = {
    "peak_memory": ("scaling", {"peak_memory_bytes": math.nan}, "No run recorded its memory."),
    "wait_causes": ("scaling", dict.fromkeys(WAIT_CAUSES.values(), math.nan), "The clocks of no run could be aligned"),
    "transfer_bytes": (
        "rates",
        {"machine_gb_per_s": math.nan, "probed_gb_per_s": math.nan, "fitted_at": 2, "gpus": 2},
        "Nothing to compare with",
    ),
}


@pytest.mark.parametrize("name", NOTHING)
def test_a_figure_with_nothing_to_show_says_why_and_stays_off_the_page(name: str, laptop: pd.DataFrame) -> None:
    kind, change, words = NOTHING[name]
    unknown = fabricated.material(laptop).tables[kind].assign(**change)
    assert svg.reason(draw(name, unknown)).startswith(words)
    drawings = {name: draw(name, unknown), "cost": draw("cost", laptop)}
    html = page.render(fabricated.material(laptop), drawings)
    assert 'id="figure-cost"' in html
    assert f'id="figure-{name}"' not in html
    assert words in html


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


def test_the_scale_of_cost_holds_every_bar(cluster: pd.DataFrame) -> None:
    """Also those of later panels: the first panel's bars are the lowest here."""
    rising = cluster.assign(experiment=cluster["experiment"].map(lambda name: f"{name != 'training_3d':d}_{name}"))
    figure = scaling_figures.cost(rising.sort_values("experiment", kind="stable"))
    tallest = max(bar.get_y() + bar.get_height() for axes in figure.axes for bar in axes.patches)
    assert all(axes.get_ylim()[1] > tallest for axes in figure.axes)


@pytest.mark.parametrize(("times", "cut"), [(5.0, True), (2.0, False)])
def test_a_bar_that_leaves_the_axis_says_so_and_carries_its_value(
    laptop: pd.DataFrame, times: float, cut: bool
) -> None:
    """The last bar of training_2d, made more than OUTLIER times as tall as all others, or less."""
    last = (laptop["experiment"] == "training_2d") & (laptop["gpus"] == 4)
    taller = laptop.assign(
        **{name: laptop[name].where(~last, times * laptop[name]) for name in ("cost", "cost_lo", "cost_hi")}
    )
    axes = panel(scaling_figures.cost(taller), "training_2d")
    cost = of(taller, "training_2d", TOTAL)["cost"].iloc[-1]
    assert (cost > axes.get_ylim()[1]) == cut
    said = [text.get_text() for text in axes.texts]
    assert said[-1] == ("\u2191 " if cut else "") + wording.times(cost)
    assert len({len(text.split(".")[1]) for text in said if text[0] != "\u2191"}) == 1  # 0.95x beside 1.00x


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
    assert axes.get_xlabel() == "GPUs\ndo not meet"
    total = of(cluster, "inference_2d", TOTAL)
    assert {(64.0, total["compute_max_s"].iloc[-1]), (64.0, total["transfer_s"].iloc[-1])} <= set(marks(axes))
    slow = cluster.assign(transfer_s=cluster["transfer_s"].where(cluster["gpus"] < 64, 9.0))
    assert panel(scaling_figures.crossing(slow), "inference_2d").get_xlabel().startswith("GPUs\nmeet at ")
    shared = slow.assign(oversubscribed=slow["gpus"] == 64)  # the lines that are drawn cross
    assert panel(scaling_figures.crossing(shared), "inference_2d").get_xlabel() == "GPUs\nmeet only on shared cores"


def test_wait_over_compute_has_outer_bounds(laptop: pd.DataFrame) -> None:
    axes = panel(efficiency_figures.wait_causes(laptop), "inference_2d\ndenoiser")
    row = of(laptop, "inference_2d", "denoiser").set_index("gpus").loc[2]
    lo, hi = row["wait_s_lo"] / row["compute_s_hi"], row["wait_s_hi"] / row["compute_s_lo"]
    assert lo < row["wait_s"] / row["compute_s"] < hi
    assert (1.0, lo, hi) in intervals(axes)  # the second bar


@pytest.mark.parametrize("section", ["gradient", "denoiser"])
def test_wait_causes_of_each_section_add_up_to_its_wait(laptop: pd.DataFrame, section: str) -> None:
    axes = panel(efficiency_figures.wait_causes(laptop), f"inference_2d\n{section}")
    rows = of(laptop, "inference_2d", section)
    tops = {bar.get_x() + bar.get_width() / 2: bar.get_y() + bar.get_height() for bar in axes.patches}
    assert list(tops.values()) == pytest.approx(list(rows["wait_s"] / rows["compute_s"]))


@pytest.mark.parametrize("name", OF_SCALING)
def test_oversubscribed_points_are_hollow_and_the_legend_says_so(
    name: str, laptop: pd.DataFrame, cluster: pd.DataFrame
) -> None:
    figure = drawn(name, laptop)
    assert "hollow: oversubscribed, more ranks than cores" in legend_labels(figure)
    hollow = {x: value for axes in figure.axes for (x, _), value in marks(axes).items()}
    if hollow:
        assert hollow == {1.0: False, 2.0: False, 4.0: True} or hollow == {2.0: False, 4.0: True}
    for axes in figure.axes:
        for bar in axes.patches:
            at_four = bar.get_x() + bar.get_width() / 2 == pytest.approx(2)  # the third bar
            assert (matplotlib.colors.to_hex(bar.get_facecolor()) == "#ffffff") == at_four
    assert not any("oversubscribed" in label for label in legend_labels(drawn(name, cluster)))


@pytest.mark.parametrize("name", OF_SCALING)
def test_no_interval_is_drawn_where_there_is_none(name: str, laptop: pd.DataFrame) -> None:
    bounds = [column for column in laptop if column.endswith(("_lo", "_hi"))]
    figure = drawn(name, laptop.assign(**dict.fromkeys(bounds, math.nan)))
    assert not any(intervals(axes) for axes in figure.axes)


@pytest.mark.parametrize("name", OF_SCALING)
def test_one_experiment_at_one_count_is_drawn(name: str, laptop: pd.DataFrame) -> None:
    one = of(laptop, "inference_2d")
    assert draw(name, one[one["gpus"] == 1]).endswith("</svg>\n")


def test_svg_has_real_text_and_values_on_hover(drawings: dict[str, str]) -> None:
    root = ElementTree.fromstring(drawings["efficiencies"])
    space = "{http://www.w3.org/2000/svg}"
    assert {"= load", "balance", "inference_2d"} <= {text.text for text in root.iter(f"{space}text")}
    titles = [title.text or "" for title in root.iter(f"{space}title")]
    assert "inference_2d, gradient, 2 GPUs: load balance 80 % (79 to 81), 3 iterations" in titles
    assert any(title.endswith("4 GPUs: load balance 57 % (57 to 58), 3 iterations, oversubscribed") for title in titles)
    tagged = {group.get("data-section") for group in root.iter(f"{space}g")}
    assert {"gradient", "denoiser", "forward", "backward", TOTAL} <= tagged


def test_on_cpu_every_axis_and_value_says_ranks(laptop: pd.DataFrame) -> None:
    for name, drawing in fabricated.drawings(laptop, "rank").items():
        assert "GPU" not in drawing, name
    root = ElementTree.fromstring(draw("cost", laptop, "rank"))
    assert {"ranks", "rank-seconds, relative"} <= {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}


def test_of_many_counts_some_are_named_the_largest_among_them(cluster: pd.DataFrame) -> None:
    axes = prediction_figures.predicted(fabricated.prediction(cluster)).axes[0]
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert len(labels) == 11
    assert [label for label in labels if label] == ["1", "4", "16", "64", "256", "1024"]


def test_names_are_text_not_markup(laptop: pd.DataFrame) -> None:
    name = '<b>"$x^2$" & co</b>'
    drawing = draw("cost", of(laptop, "inference_2d").assign(experiment=name))
    root = ElementTree.fromstring(drawing)
    assert name in {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert name in {group.get("data-experiment") for group in root.iter("{http://www.w3.org/2000/svg}g")}


def test_sections_differ_in_grey_too() -> None:
    looks = style.section_looks(fabricated.cluster_scaling())
    assert len({look.marker for look in looks.values()}) == len(looks)
    luminance = [sum(matplotlib.colors.to_rgb(look.colour)) for look in style.PART_LOOKS.values()]
    assert luminance == sorted(luminance)
    assert min(later - before for before, later in pairwise(luminance)) > 0.5


def test_a_colour_means_one_thing_on_the_whole_page() -> None:
    """Parts, causes and sections share none; causes too are told apart in grey."""
    kinds = {
        "parts": {look.colour for look in (*style.PART_LOOKS.values(), *style.PART_LINES.values())},
        "causes": {look.colour for look in style.CAUSE_LOOKS.values()},
        "sections": {look.colour for look in style.section_looks(fabricated.cluster_scaling()).values()},
    }
    assert {one: len(colours) for one, colours in kinds.items()} == {"parts": 5, "causes": 3, "sections": 5}
    assert len(set().union(*kinds.values())) == 13
    luminance = [sum(matplotlib.colors.to_rgb(look.colour)) for look in style.CAUSE_LOOKS.values()]
    assert min(later - before for before, later in pairwise(luminance)) > 0.5


def test_a_section_keeps_its_colour_where_a_table_lacks_others(cluster: pd.DataFrame) -> None:
    looks = style.section_looks(cluster)
    some = style.section_looks(cluster[cluster["section"] != "gradient"])
    assert some == {name: look for name, look in looks.items() if name != "gradient"}
    strangers = style.section_looks(cluster.assign(section=cluster["section"].replace("gradient", "other")))
    assert len({look.colour for look in strangers.values()}) == len(strangers)


# What every figure has to do, those too that are yet to be added: they are those of the catalogue.


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_figure_is_one_function_that_draws_from_the_table_it_names(name: str, laptop: pd.DataFrame) -> None:
    assert sum(hasattr(family, name) for family in FAMILIES) == 1
    table = fabricated.material(laptop).tables[CATALOGUE[name].table]
    drawing = draw(name, table)
    assert drawing == draw(name, table.copy())
    assert not svg.reason(drawing)
    root = ElementTree.fromstring(drawing)
    assert any(title.text for title in root.iter(f"{SVG}title")), "no value shows on hover"
    tagged = {group.get("data-experiment") for group in root.iter(f"{SVG}g")} - {None}
    assert tagged == set(laptop["experiment"])
    assert "GPU" not in draw(name, table, "rank")


@pytest.mark.parametrize("name", [*CATALOGUE, "timeline"])
def test_every_caption_has_two_lines_at_most_and_speaks_of_what_ran(name: str) -> None:
    entry = TIMELINE if name == "timeline" else CATALOGUE[name]
    assert 40 < len(entry.caption) <= 190  # about 95 characters a line
    assert entry.caption.endswith(".")
    assert len(entry.reading) > 100
    for unit, other in (("GPU", "{{"), ("rank", "GPU")):
        assert not any(other in text for text in entry.worded(unit))


@pytest.mark.parametrize("change", ["unknown name", "no column", "no row"])
def test_a_bad_request_is_one_clear_line(change: str, laptop: pd.DataFrame) -> None:
    with pytest.raises(TrisectError, match=r"^figure \w+: .*[a-z0-9_]$"):
        if change == "unknown name":
            draw("costs", laptop)
        elif change == "no column":
            draw("cost", laptop.drop(columns="cost"))
        else:
            draw("cost", laptop.iloc[:0])


def test_long_names_break_into_lines_and_every_row_is_labelled(cluster: pd.DataFrame) -> None:
    """Eight experiments make two rows of panels."""
    again = [cluster.assign(experiment=cluster["experiment"] + suffix) for suffix in ("", "_with_a_long_name")]
    figure = scaling_figures.peak_memory(pd.concat(again, ignore_index=True))
    assert [axes.get_ylabel() for axes in figure.axes] == ["peak memory of a rank, GB", "", "", ""] * 2
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[4].replace("\n", "") == "inference_2d_with_a_long_name"
    assert max(len(line) for title in titles for line in title.split("\n")) <= 22
