"""The first table of the page: a row per experiment, with numbers of the scaling table, that leads to its finding."""

from __future__ import annotations

import math
import re
from typing import Any

import fabricated
import pandas as pd
import pytest

from trisect.report import page
from trisect.report.sections.verdicts import findings_view
from trisect.results.notes import note
from trisect.results.tables import TOTAL


def answers(scaling: pd.DataFrame, **changes: Any) -> dict[str, dict[str, str] | None]:
    view = findings_view(fabricated.material(scaling, **({"records": ()} | changes)))
    return {item["experiment"]: item["answer"] for item in view}


def one_experiment(*points: tuple[float, float, float]) -> pd.DataFrame:
    """Times at 1, 2, 4, ... GPUs from (compute, transfer, wait)."""
    rows = [fabricated.row("made_up", "part", 2**place, *point) for place, point in enumerate(points)]
    return fabricated.finished(rows)


def test_a_row_holds_the_table_s_numbers(cluster: pd.DataFrame) -> None:
    total = cluster[(cluster["experiment"] == "inference_2d") & (cluster["section"] == TOTAL)].set_index("gpus")
    efficiency = total["parallel_efficiency"]
    row = answers(cluster)["inference_2d"]
    assert row == {
        "pays": "8",
        "half": "32",
        "largest": "64",
        "efficiency": f"{100 * efficiency[64]:.0f} %",
        "speedup": "29.3 of 64",
        "costly": "",
        "reason": "transfer, in gradient and denoiser",
        "remedy": "overlap the transfer",
        "sure": "intervals keep clear",
    }
    assert efficiency[8] >= 0.8 > efficiency[16]
    assert efficiency[32] >= 0.5 > efficiency[64]
    assert total["speedup"][64] == pytest.approx(29.3, abs=0.05)


def test_ideal_speedup_is_relative_to_the_smallest_count(cluster: pd.DataFrame) -> None:
    row = answers(cluster)["training_3d"]
    assert row is not None
    assert (row["pays"], row["half"], row["speedup"]) == ("64 (all)", "64 (all)", "14.8 of 16")


@pytest.mark.parametrize(
    ("points", "pays", "half"),
    [
        (((1, 0, 0), (0.5, 0.4, 0)), "none past 1", "2 (all)"),
        (((0.4, 0.6, 0), (0.2, 0.8, 0)), "none", "none"),
        (((1, 0, 0), (0.5, 0, 0), (0.25, 0.2, 0)), "2", "4 (all)"),
    ],
)
def test_what_no_count_or_only_the_smallest_reaches_is_said(points: tuple, pays: str, half: str) -> None:
    row = answers(one_experiment(*points))["made_up"]
    assert row is not None
    assert (row["pays"], row["half"]) == (pays, half)


def test_busy_but_costly_is_not_shown_as_paying_alone() -> None:
    """Nothing but compute, and no faster: parallel efficiency is 100 % and the cost doubles."""
    row = answers(one_experiment((1, 0, 0), (1, 0, 0)))["made_up"]
    assert row is not None
    assert (row["pays"], row["costly"], row["speedup"]) == ("2 (all)", "2.00x", "1.00 of 2")


def test_where_nothing_is_lost_no_remedy_is_given() -> None:
    row = answers(one_experiment((1.2, 0, 0), (0.5, 0, 0.05)))["made_up"]
    assert row is not None
    assert row["reason"] == "nothing: look at the run at 1"
    assert row["remedy"] == ""
    html = page.render(fabricated.material(one_experiment((1.2, 0, 0), (0.5, 0, 0.05)), records=()), {})
    assert "What helps" not in html


def test_caveats_are_counted_those_of_runs_too(laptop: pd.DataFrame) -> None:
    notes = {("inference_2d", 2): [note("unattributed", share=0.05)]}
    rows = answers(laptop, notes=notes)
    assert [row["sure"] for row in rows.values() if row] == ["3 caveats", "2 caveats"]
    html = page.render(fabricated.material(laptop, records=(), notes=notes), {})
    assert html.count('class="caveat"') == 5


def test_each_row_leads_to_its_finding_and_comes_before_all_findings(cluster: pd.DataFrame) -> None:
    named = cluster.assign(experiment=cluster["experiment"].replace("training_3d", "a b & c"))
    html = page.render(fabricated.material(named, records=()), {})
    table, findings = html.split('<section id="findings">')
    links = re.findall(r'href="#(finding-[^"]+)"', table)
    assert len(links) == 4
    assert links == re.findall(r'<article class="finding" id="([^"]+)"', findings)
    for told in ('class="key"', 'aria-label="Contents"'):
        assert html.index(told) < html.index('<table class="answer"')


def test_one_count_alone_has_a_row_that_says_so(cluster: pd.DataFrame) -> None:
    one = cluster[cluster["gpus"] == 4]
    assert set(answers(one).values()) == {None}
    html = page.render(fabricated.material(one, records=()), {})
    assert "Nothing to compare: fewer than two counts" in html.split('<section id="findings">')[0]


def test_speedup_stands_in_headline_table_and_figure(cluster: pd.DataFrame) -> None:
    html = page.render(fabricated.material(cluster, records=()), fabricated.drawings(cluster))
    findings, rest = html.split('<section id="figures">')
    figures, tables = rest.split('<section id="tables">')
    assert "the speedup is 29.3 of 64" in findings.replace("\u00a0", " ")
    assert "29.3 of 64 at 64" in figures
    assert ">29.3 of 64<small>29.0 to 29.6</small>" in tables


def test_no_interval_of_nothing_and_no_number_with_an_exponent(laptop: pd.DataFrame) -> None:
    far = laptop.assign(cost=laptop["cost"] * 1e5, peak_memory_bytes=math.nan)
    html = page.render(fabricated.material(far), {})
    assert "0 to 0<" not in html
    assert not re.search(r">[\d.]+e\+\d+", html)
