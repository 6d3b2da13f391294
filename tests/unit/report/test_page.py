"""The page: everything on it, nothing fetched, the same bytes, and names shown as text."""

from __future__ import annotations

import re
from collections import Counter
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import fabricated
import pandas as pd
import pytest
from pages import MISSING, Elements

from trisect.report import page
from trisect.report.catalogue import CATALOGUE, TIMELINE
from trisect.report.material import Material
from trisect.report.sections import cells
from trisect.results.layout import Layout
from trisect.results.tables import ABOUT, SCALING


def rendered(laptop: pd.DataFrame, drawings: dict[str, str], *, missing: object = MISSING, **changes: Any) -> str:
    return page.render(fabricated.laptop_material(laptop, missing=missing), drawings, **changes)


@pytest.fixture(scope="module")
def html(laptop: pd.DataFrame, drawings: dict[str, str]) -> str:
    return rendered(laptop, drawings)


@pytest.fixture(scope="module")
def parsed(html: str) -> Elements:
    return Elements(html)


def test_the_same_inputs_give_the_same_bytes(html: str, laptop: pd.DataFrame, drawings: dict[str, str]) -> None:
    records = fabricated.records_for(laptop, fabricated.laptop_record)
    again = fabricated.laptop_material(laptop.copy(), records=records[::-1], missing=dict(MISSING))
    assert page.render(again, dict(drawings)) == html


def test_nothing_is_fetched(html: str, parsed: Elements) -> None:
    assert not [tag for tag, _ in parsed.tags if tag in {"img", "iframe", "object", "embed", "base", "image"}]
    assert not [attributes for tag, attributes in parsed.tags if tag == "script" and attributes]
    assert [a["href"] for tag, a in parsed.tags if tag == "link"] == ["data:,"]
    for name in ("href", "xlink:href", "src", "action"):
        assert not [value for value in parsed.values(name) if re.match(r"(?i)\s*([a-z]+:)?//|javascript:", value)]
    assert not re.search(r"@import|url\(\s*['\"]?(?!#)|fetch\(|XMLHttpRequest|WebSocket|import\(", html)
    assert "default-src 'none'" in html


def test_the_answer_comes_first_then_findings_figures_tables_runs(parsed: Elements) -> None:
    assert [a["id"] for tag, a in parsed.tags if tag == "section" and "id" in a] == [
        "answer",
        "findings",
        "figures",
        "reconstruction",
        "movement",
        "prediction",
        "tables",
        "runs",
    ]
    assert "does adding ranks pay?" in parsed.text


def test_every_figure_has_its_caption_its_runs_and_its_command(parsed: Elements) -> None:
    shown = [name for name in CATALOGUE if name != "transfer_bytes"]  # on one host there is no rate to compare with
    for name in shown:
        words = CATALOGUE[name].worded("rank")
        assert words.caption in parsed.text
        assert words.reading in parsed.text
        assert f"snakemake --force -- results/figures/{name}.svg" in parsed.text
    assert "Not drawn: transfer against bytes over a rate." in parsed.text
    tables = Counter(entry.table for entry in CATALOGUE.values())
    shows = "Shows inference_2d and training_2d at 1, 2 and 4."
    assert parsed.text.count(shows) == tables["scaling"]
    of_ranks = "Shows inference_2d and training_2d at 2."  # 4 is oversubscribed
    assert parsed.text.count(of_ranks) == tables["ranks"]
    of_rates = "Shows inference_2d and training_2d at 2 and 4."  # one rank alone moves nothing
    assert parsed.text.count(of_rates) == tables["rates"] - 1
    predicted = "Shows inference_2d and training_2d at 1, 2 and 4; lines are modelled."
    assert parsed.text.count(predicted) == tables["prediction"]


def test_ids_are_unique_and_references_resolve(parsed: Elements) -> None:
    ids = list(parsed.values("id"))
    assert len(ids) == len(set(ids))
    targets = [value[1:] for name in ("href", "xlink:href") for value in parsed.values(name) if value.startswith("#")]
    clips = [found for value in parsed.values("clip-path") for found in re.findall(r"url\(#(.+?)\)", value)]
    assert len(targets) > 100
    assert clips
    assert set(targets) | set(clips) <= set(ids)


def test_missing_runs_are_listed_with_their_reason(parsed: Elements) -> None:
    assert "1 run is not in this report: why, and how to run it ." in parsed.text
    assert "inference_3d at 2 : rank 1 was killed by signal 9" in parsed.text
    assert "snakemake --forcerun benchmark -- results/inference_3d/gpus-2/decomposition.csv" in parsed.text


def test_nothing_is_said_to_be_missing_when_nothing_is(laptop: pd.DataFrame, drawings: dict[str, str]) -> None:
    assert "Not in this report" not in rendered(laptop, drawings, missing={})


def test_one_count_alone_is_said_to_be_compared_with_nothing(laptop: pd.DataFrame) -> None:
    one = laptop[(laptop["experiment"] == "inference_2d") & (laptop["gpus"] == 1)]
    text = Elements(page.render(fabricated.laptop_material(one), {})).text
    assert "Nothing was compared." in text
    assert "keep clear of" not in text


def test_a_page_without_any_run_says_what_is_missing() -> None:
    empty = fabricated.laptop_scaling().iloc[:0]
    text = Elements(page.render(Material(empty, pd.DataFrame(), missing=MISSING), {})).text
    assert "No run has finished yet." in text
    assert "rank 1 was killed by signal 9" in text


def test_oversubscription_is_said_beside_every_affected_row(html: str, laptop: pd.DataFrame) -> None:
    row = r'<th scope="row" data-value="(\d)">\d(<span class="flag">oversubscribed</span>)?</th>'
    rows = re.findall(row, html.split('<section id="tables">')[1])
    assert len(rows) == len(laptop)
    assert {(gpus, bool(flag)) for gpus, flag in rows} == {("1", False), ("2", False), ("4", True)}


def test_tables_hold_every_column_at_full_precision(html: str, laptop: pd.DataFrame) -> None:
    found = re.findall(r'<th scope="row" data-value="(\w+)"(?: title="(.+?)")?><code>', html)
    names = [name for name, _ in found]
    plain = [name for name in SCALING if name not in ("experiment", "section", "gpus")]
    assert set(names) == {name for name in plain if not name.endswith(("_lo", "_hi"))}
    assert f'data-value="{laptop["span_s"].iloc[0]}"' in html
    assert {name: unescape(about) for name, about in found if about}.items() <= ABOUT.items()
    assert dict(found)["load_balance"]


def test_each_run_says_what_it_ran_on_and_how_to_run_it_again(parsed: Elements) -> None:
    for words in (
        "1 x cpu on one host",
        "PSNR 31.4 dB; against one process: reconstruction 3.1e-07 (laptop size, 2 iterations, tolerance 0.0001)",
        "1.03x: median of 3 iterations with the profiler over 3 without",
        "load balance that whole pieces allow tiles 100 %, operators 50 %",
        "oversubscribed yes: ranks shared cores, which looks like scaling loss",
        "deepinv 0.5.0, nccl 2.27.5, torch 2.10.0+cu128, trisect 0.1.0",
        "snakemake --forcerun benchmark -- results/training_2d/gpus-4/decomposition.csv",
        '"seed": 7',
    ):
        assert words in parsed.text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"transfer_is_bound": True}, "takes part in gradient and denoiser: transfer there is a lower bound"),
        ({"repairs": 2}, "Traces were repaired at 1, 2 and 4 GPUs: these numbers rest on repaired values."),
        ({"unattributed_share": 0.011}, "More than 1.0 % of the device time belongs to no launch at 1, 2 and 4."),
    ],
)
def test_doubtful_rows_are_said_below_the_table(laptop: pd.DataFrame, change: dict, words: str) -> None:
    rows = laptop[laptop["experiment"] == "inference_2d"]
    assert cells.table_notes(rows) == []
    (note,) = cells.table_notes(rows.assign(**change))
    assert words in note


def test_runs_that_do_not_compare_are_said(laptop: pd.DataFrame, drawings: dict[str, str], html: str) -> None:
    """One rank that had both cores to itself is no baseline of two that have one each."""
    records = fabricated.records_for(laptop, fabricated.laptop_record)
    faster = [rank.model_copy(update={"threads": 2}) for rank in records[0].ranks]
    records[0] = records[0].model_copy(update={"ranks": faster})
    text = Elements(page.render(fabricated.laptop_material(laptop, records=records), drawings)).text
    sentence = "The runs differ in threads per rank, so their times may not compare: 2 at 1; 10 at 2 and 4."
    assert text.count(sentence) == 1
    assert "The runs differ" not in html


def test_links_are_relative_paths_of_the_layout(parsed: Elements) -> None:
    links = {unquote(value) for value in parsed.values("href") if not value.startswith(("#", "data:"))}
    run = Layout(Path()).run("inference_2d", 4)
    assert {str(run.decomposition), str(run.record), str(run.logs), "inference_2d/scaling.csv"} <= links
    assert all(not link.startswith("/") for link in links)


def test_timelines_have_a_drawing_a_caption_and_a_file_for_perfetto(
    laptop: pd.DataFrame, drawings: dict[str, str], html: str
) -> None:
    drawn = fabricated.timelines(laptop)
    page_ = Elements(rendered(laptop, drawings, timelines=drawn))
    files = {Layout(Path()).run(*run).timeline.as_posix() for run in drawn}
    assert files == {"inference_2d/gpus-2/timeline.json.gz", "training_2d/gpus-2/timeline.json.gz"}
    assert files <= {unquote(value) for value in page_.values("href")}
    assert page_.text.count(TIMELINE.caption) == 1
    assert "slowest iteration (" in page_.text
    ids = list(page_.values("id"))
    assert len(ids) == len(set(ids))
    assert "One iteration, rank by rank" not in html  # there is none in that report


def test_html_in_names_reasons_and_values_is_text(laptop: pd.DataFrame) -> None:
    evil = "<script>alert('x')</script>\"&"
    rows = laptop[laptop["experiment"] == "inference_2d"].assign(experiment=evil)
    rows = rows.assign(section=rows["section"].replace("gradient", evil))
    record = fabricated.laptop_record("inference_2d", 2).model_copy(
        update={
            "experiment": evil,
            "sections": [evil],
            "config": {"note": evil},
            "versions": {"torch": evil},
            "environment": {"NCCL_DEBUG": evil},
            "hosts": {evil: 2},
        }
    )
    drawings = fabricated.drawings(rows)
    html = page.render(fabricated.laptop_material(rows, records=[record], missing={(evil, 1): evil}), drawings)
    parsed = Elements(html)
    assert "<script>alert" not in html
    assert len([tag for tag, _ in parsed.tags if tag == "script"]) == 1
    assert parsed.text.count(evil) > 20
    assert evil in set(parsed.values("data-experiment"))


def test_paths_with_spaces_are_quoted_for_the_shell(laptop: pd.DataFrame, drawings: dict[str, str]) -> None:
    text = Elements(rendered(laptop, drawings, results=Path("my results"))).text
    assert "snakemake --forcerun benchmark -- 'my results/inference_2d/gpus-1/decomposition.csv'" in text
