"""Two sweeps beside each other on the page."""

from __future__ import annotations

import fabricated
import numpy as np
import pandas as pd
import pytest
from pages import MISSING, Elements

from trisect.analysis.differences import Comparison
from trisect.report import page
from trisect.report.sections.comparison import comparison_view
from trisect.results.notes import note


def test_rows_have_a_sign_a_unit_and_an_interval() -> None:
    found = comparison_view(fabricated.comparison())
    shown = [(row["metric"], row["difference"].shown, row["difference"].spread) for row in found["all"]]
    assert shown == [
        ("span", "+20.0 ms", "15.0 to 25.0"),
        ("span", "0 ms", "-10.0 to 20.0"),
        ("load balance", "-", ""),
        ("transfer efficiency", "-3.0 points", "-4.0 to -2.0"),
    ]
    assert [row["section"] for row in found["main"]] == ["gradient", "total"]
    assert (found["worse"], found["better"]) == (1, 0)
    assert float(found["all"][0]["difference"].value) == pytest.approx(0.02)


def rendered(laptop: pd.DataFrame, drawings: dict[str, str], found: Comparison | None) -> Elements:
    material = fabricated.laptop_material(laptop, missing=MISSING)
    return Elements(page.render(material, drawings, comparison=found))


def test_the_section_is_there_when_there_is_a_comparison(laptop: pd.DataFrame, drawings: dict[str, str]) -> None:
    text = rendered(laptop, drawings, fabricated.comparison()).text
    assert "Beyond noise, 1 of 4 differences are worse and 0 better than before." in text
    assert "What changed torch: 2.10 before, 2.14 after" in text
    assert "training_2d at 4: only before" in text
    assert "Before and after" not in rendered(laptop, drawings, None).text


def test_nothing_beyond_noise_is_said(laptop: pd.DataFrame, drawings: dict[str, str]) -> None:
    quiet = fabricated.comparison(
        table=fabricated.comparison().table.assign(verdict="within noise"), only_before=[], changed=[]
    )
    parsed = rendered(laptop, drawings, quiet)
    assert "None of 4 differences is beyond noise." in parsed.text
    assert "What changed" not in parsed.text
    assert np.isin(["comparison", "figures"], list(parsed.values("id"))).all()


def test_names_are_text(laptop: pd.DataFrame, drawings: dict[str, str]) -> None:
    evil = "<script>alert('x')</script>"
    bad = fabricated.comparison(
        table=fabricated.comparison().table.assign(experiment=evil, section=evil),
        changed=[note("changed", name=evil, before="", after="")],
    )
    parsed = rendered(laptop, drawings, bad)
    assert len([tag for tag, _ in parsed.tags if tag == "script"]) == 1
    assert parsed.text.count(evil) > 5
