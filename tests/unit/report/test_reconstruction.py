"""The section that shows a reconstruction: its pictures, its lines and its sentences are those of the run."""

from __future__ import annotations

import base64
import io
import math
import re
from pathlib import Path
from xml.etree import ElementTree

import fabricated
import numpy as np
import pandas as pd
import pytest
from matplotlib import image as images
from pages import Elements

from trisect.errors import TrisectError
from trisect.pipeline.finished_runs import pictures_of
from trisect.report import page
from trisect.report.figures import reconstruction
from trisect.report.material import Material
from trisect.report.sections.quality import quality_note, reconstruction_view
from trisect.report.text.note_words import in_words
from trisect.results.layout import Layout
from trisect.results.record import Quality, RunRecord

RISING = [5.573, 15.18, 20.74, 24.12]
EVIL = "<script>alert('x')</script>\"&"


def quality(
    found: list[float] = RISING, single: list[float] | None = None, untiled: list[float] | None = None
) -> Quality:
    return Quality(size="laptop", psnr_db=found, single_psnr_db=single or found, untiled_psnr_db=untiled)


def record(experiment: str, gpus: int, shown: Quality | None) -> RunRecord:
    return fabricated.laptop_record(experiment, gpus).model_copy(update={"quality": shown})


def material(*records: RunRecord) -> Material:
    runs = [{"experiment": one.experiment, "gpus": one.gpus} for one in records]
    return Material(pd.DataFrame(runs), pd.DataFrame(), records=records)


@pytest.fixture(scope="module", name="pictures")
def _pictures() -> dict[str, np.ndarray]:
    """Truth and result in colour, 6 rows of 8; a grey measurement of half the size."""
    random = np.random.default_rng(0)
    shapes = {"truth": (6, 8, 3), "measurement": (3, 4), "result": (6, 8, 3)}
    return {name: random.integers(0, 256, shape, np.uint8) for name, shape in shapes.items()}


def embedded(svg: str) -> list[np.ndarray]:
    """The pictures of a drawing, as bytes."""
    found = re.findall(r'href="data:image/png;base64,\s*([^"]+)"', svg)
    return [(images.imread(io.BytesIO(base64.b64decode(one))) * 255).round().astype(np.uint8) for one in found]


def hovers(svg: str) -> list[str]:
    return [title.text or "" for title in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}title")]


def test_pictures_are_embedded_pixel_by_pixel_with_their_names_and_sizes(pictures: dict[str, np.ndarray]) -> None:
    svg = reconstruction.draw(quality([5.0, 20.0]), pictures, "training_2d", 2, "rank")
    truth, measurement, result = embedded(svg)
    np.testing.assert_array_equal(truth[..., :3], pictures["truth"])
    np.testing.assert_array_equal(measurement[..., 0], pictures["measurement"])
    np.testing.assert_array_equal(result[..., :3], pictures["result"])
    texts = "".join(ElementTree.fromstring(svg).itertext())
    for words in ("truth", "one measurement", "result", "8 x 6 pixels", "4 x 3 pixels"):
        assert words in texts
    assert "PSNR" not in texts  # two values are no trajectory


def test_pixels_are_squares_unless_there_are_more_than_are_drawn() -> None:
    for pixels, squares in ((reconstruction.SMALL, 3), (reconstruction.SMALL + 1, 0)):
        grey = dict.fromkeys(reconstruction.PICTURE_TITLES, np.zeros((pixels, pixels), np.uint8))
        assert reconstruction.draw(quality([5.0, 20.0]), grey, "e", 2).count("pixelated") == squares


def test_lines_are_the_psnr_of_the_record_and_a_difference_is_drawn() -> None:
    apart, untiled = [*RISING[:-1], 24.5], [*RISING[:-1], 25.0]
    shown = quality(apart, RISING, untiled)
    axes = reconstruction.figure(shown, {}, "inference_2d", 2, "rank").axes[-1]
    lines = [list(line.get_ydata()) for line in axes.lines if line.get_linestyle() != "None" and len(line.get_ydata())]
    assert lines == [RISING, apart, untiled]
    looks = [(line.get_marker(), line.get_linewidth()) for line in axes.lines if line.get_label()[0] != "_"]
    assert len(set(looks)) == 3
    svg = reconstruction.draw(shown, {}, "inference_2d", 2, "rank")
    assert "inference_2d, 2 ranks together, after 3 iterations: 24.50 dB" in hovers(svg)
    assert "inference_2d, one process, same tiles, after 3 iterations: 24.12 dB" in hovers(svg)
    assert "inference_2d, one process, untiled, at the start: 5.573 dB" in hovers(svg)
    assert svg == reconstruction.draw(shown, {}, "inference_2d", 2, "rank")


def test_what_is_unknown_or_infinite_is_not_drawn() -> None:
    axes = reconstruction.figure(quality([5.0, math.inf, math.nan]), {}, "e", 1).axes[-1]
    drawn = [line.get_ydata() for line in axes.lines if len(line.get_ydata()) == 3]
    assert len(drawn) == 2  # no untiled one
    assert all(math.isnan(values[1]) and math.isnan(values[2]) for values in drawn)
    assert reconstruction.draw(quality([5.0, 20.0]), {}, "e", 1) == ""


def test_of_many_iterations_some_have_marks() -> None:
    axes = reconstruction.figure(quality([float(n) for n in range(1000)]), {}, "e", 1).axes[-1]
    assert len(axes.lines) < 2 * reconstruction.MOST_MARKS + 6


@pytest.mark.parametrize(
    ("by_count", "words"),
    [
        (
            {1: quality(untiled=RISING), 2: quality(untiled=[*RISING[:-1], 24.1207])},
            "At laptop size, PSNR rises from 5.573 dB at the start to 24.12 dB after 3 iterations; at 1 and 2 ranks it"
            " is the same as in one process; tiling costs 0.0007 dB.",
        ),
        (
            {
                2: quality([5.0, 20.0019], [5.0, 20.0], [5.0, 19.0]),
                4: quality([5.0, 20.0], [5.0, 20.00001], [5.0, 19.5]),
            },
            "At laptop size, PSNR rises from 5.000 dB at the start to 20.00 dB after 1 iteration; at 2 and 4 ranks it"
            " differs from that of one process by up to 0.0019 dB; tiling adds 0.5000 dB.",
        ),
        (
            {1: quality([5.0, 4.0], [5.0, 4.00001], [5.0, 4.00002])},
            "At laptop size, PSNR falls from 5.000 dB at the start to 4.000 dB after 1 iteration; at 1 rank it differs"
            " from that of one process by less than 0.0001 dB; tiling costs less than 0.0001 dB.",
        ),
        (
            {1: quality([5.0, math.nan])},
            "At laptop size, PSNR goes from 5.000 dB at the start to - dB after 1 iteration; at 1 rank it cannot be"
            " compared with one process; what tiling changes is not known.",
        ),
    ],
)
def test_the_sentence_says_the_numbers_of_the_records(by_count: dict[int, Quality], words: str) -> None:
    assert in_words(quality_note(by_count), "rank") == words


def test_the_largest_count_with_a_psnr_is_shown(pictures: dict[str, np.ndarray]) -> None:
    runs = material(record("e", 4, None), record("e", 2, quality()), record("e", 1, quality([1.0, 2.0, 3.0])))
    view = reconstruction_view(runs, {("e", 2): pictures})
    assert view is not None
    (entry,) = view["shown"]
    assert (entry["pictures"], entry["line"]) == (True, True)
    assert len(embedded(entry["drawing"])) == 3
    assert 'aria-label="e: truth, one measurement and result; PSNR by iteration."' in entry["drawing"]
    assert "2 ranks together" in entry["drawing"]
    assert "at 1 and 2 ranks" in entry["sentence"]
    assert view["without"] == ""


def test_without_any_psnr_there_is_no_section() -> None:
    assert reconstruction_view(material(record("e", 1, None)), {}) is None
    assert reconstruction_view(material(), {}) is None


def test_the_page_shows_it_names_those_without_and_fetches_nothing(
    laptop: pd.DataFrame, pictures: dict[str, np.ndarray]
) -> None:
    records = [record("inference_2d", 1, quality()), record("inference_2d", 2, None), record("training_2d", 2, None)]
    made = fabricated.laptop_material(laptop, records=records)
    html = page.render(made, {}, pictures={("inference_2d", 1): pictures})
    shown = Elements(html)
    assert "PSNR rises from 5.573 dB at the start to 24.12 dB after 3 iterations" in shown.text
    assert "The weights of training_2d are no denoiser's, so no PSNR is shown of it." in shown.text
    assert "#reconstruction" in set(shown.values("href"))
    sources = [attributes["xlink:href"] or "" for tag, attributes in shown.tags if tag == "image"]
    assert len(sources) == 3
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert html == page.render(made, {}, pictures={("inference_2d", 1): pictures})
    runs = html.split('<section id="runs">')[1]
    assert runs.count("dB") == 2  # in the table and in the facts of the only run with a PSNR
    assert '<td data-value="24.12">24.1 dB</td>' in runs
    assert runs.count('<td data-value="">-</td>') == 2
    without = Elements(page.render(fabricated.laptop_material(laptop, records=records[1:]), {}))
    assert "reconstruction" not in set(without.values("id"))
    assert "#reconstruction" not in set(without.values("href"))


def test_html_in_a_name_is_text(laptop: pd.DataFrame, pictures: dict[str, np.ndarray]) -> None:
    rows = laptop.assign(experiment=laptop["experiment"].replace({"inference_2d": EVIL, "training_2d": EVIL + "2"}))
    records = [record(EVIL, 2, quality()), record(EVIL + "2", 2, None)]
    made = Material(rows, pd.DataFrame(), records=records)
    html = page.render(made, {}, pictures={(EVIL, 2): pictures})
    section = html.split('<section id="reconstruction">')[1].split('<section id="movement">')[0]
    assert "<script" not in section
    parsed = Elements(section)
    assert f"The weights of {EVIL}2 are no denoiser's" in parsed.text
    assert f"{EVIL}, 2 ranks together, after 3 iterations: 24.12 dB" in parsed.text
    assert f"{EVIL}: truth, one measurement and result; PSNR by iteration." in set(parsed.values("aria-label"))


def test_the_memory_and_arithmetic_of_a_run_are_among_its_facts(laptop: pd.DataFrame) -> None:
    one = fabricated.record("inference_2d", 2)
    more = {"peak_reserved_bytes": {"gradient": 8 * 10**9, "denoiser": 9 * 10**9}, "least_free_bytes": 2 * 10**9}
    ranks = [one.ranks[0].model_copy(update=more), one.ranks[1].model_copy(update={"least_free_bytes": 3 * 10**9})]
    changes = {"ranks": ranks, "precision": "tf32", "arithmetic": {"matmul_tf32": True, "compile": False}}
    text = Elements(page.render(fabricated.material(laptop, records=[one.model_copy(update=changes)]), {})).text
    assert "precision tf32; switched on: matmul tf32" in text
    assert "peak memory reserved gradient 8.00 GB, denoiser 9.00 GB, by the GPU that reserved most" in text
    assert "least memory free 2.00 GB of a device, at the end of a section" in text
    bare = Elements(page.render(fabricated.laptop_material(laptop), {})).text
    assert "precision fp32 " in bare
    assert "switched on" not in bare
    assert "memory reserved" not in bare
    assert "memory free" not in bare


def test_pictures_are_read_of_the_shown_runs_where_there_are_any(
    tmp_path: Path, pictures: dict[str, np.ndarray]
) -> None:
    layout = Layout(tmp_path)
    records = [record("e", 1, quality()), record("e", 2, quality()), record("f", 1, None)]
    assert pictures_of(layout, records) == {}
    path = layout.run("e", 2).reconstruction
    path.parent.mkdir(parents=True)
    np.savez_compressed(path, **pictures)
    found = pictures_of(layout, records)
    assert set(found) == {("e", 2)}
    for name, picture in pictures.items():
        np.testing.assert_array_equal(found["e", 2][name], picture)


@pytest.mark.parametrize(
    "content",
    [b"", b"no archive", {"truth": np.zeros((2, 2), np.uint8)}, dict.fromkeys(reconstruction.PICTURE_TITLES, 1.5)],
)
def test_a_damaged_file_of_pictures_is_one_line(tmp_path: Path, content: object) -> None:
    path = Layout(tmp_path).run("e", 1).reconstruction
    path.parent.mkdir(parents=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.savez(path, **content)
    with pytest.raises(TrisectError, match=r"reconstruction\.npz: .*; measure this count again") as stopped:
        pictures_of(Layout(tmp_path), [record("e", 1, quality())])
    assert "\n" not in str(stopped.value)
