"""The worked example of docs/metrics.md, executed: its tables are read from the page and computed again."""

import re
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

from trisect.analysis.baseline import scaling
from trisect.analysis.decomposition import decompose
from trisect.results.tables import (
    COLLECTIVES,
    DECOMPOSITION,
    EFFICIENCIES,
    READINGS,
    RELATIVE,
    SCALING,
    SECTIONS,
    TIMES,
    Trace,
    as_table,
)

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
MS = 1_000_000


def table(name):
    """The page's table after `<!-- table: name -->`, as text."""
    lines = PAGE.split(f"<!-- table: {name} -->\n")[1].split("\n\n")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return pd.DataFrame(cells[2:], columns=cells[0])


def job(events, ranks):
    events = events.assign(occurrence=0)
    for name in ("start", "busy", "collective starts", "hidden", "end"):
        events[name] = events[name].astype(int) * MS
    for name in ("start", "collective starts", "end"):
        events[name] += events["iteration"].astype(int) * 100 * MS
    sections = events.rename(columns={"start": "start_ns", "busy": "busy_ns", "end": "end_ns"})
    names = {"collective starts": "start_ns", "hidden": "hidden_ns", "end": "end_ns"}
    collectives = events.drop(columns="start").rename(columns=names)
    collectives = collectives.assign(group="", seq=-1, op="all_reduce", bytes=64, group_size=ranks)
    readings = [{"rank": rank, "file": "", "events": 0, "repairs": 0} for rank in range(ranks)]
    readings = pd.DataFrame(readings).assign(device_ns=0, unattributed_ns=0)
    return Trace(as_table(sections, SECTIONS), as_table(collectives, COLLECTIVES), as_table(readings, READINGS))


@pytest.fixture(name="two", scope="module")
def _two():
    return decompose(job(table("events"), 2))


def test_collectives(two):
    stated = table("collectives")
    found = two.collectives
    assert list(found["section"]) == list(stated["section"])
    for name in ("iteration", "last_rank"):
        assert list(found[name]) == [int(value) for value in stated[name]]
    for name in ("transfer", "mean_wait", "max_wait"):
        assert list(found[f"{name}_s"] * 1e3) == pytest.approx([int(value) for value in stated[name]], rel=1e-12)


@pytest.mark.parametrize("name", TIMES)
def test_times(two, name):
    stated = table("times").set_index("section")[name.removesuffix("_s")].astype(int)
    found = two.table.set_index("section")[name] * 1e3
    assert dict(found) == pytest.approx(dict(stated), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", EFFICIENCIES)
def test_efficiencies(two, name):
    stated = {row["section"]: float(Fraction(row[name])) for _, row in table("efficiencies").iterrows()}
    assert dict(two.table.set_index("section")[name]) == pytest.approx(stated, rel=1e-12)


@pytest.fixture(name="sweep", scope="module")
def _sweep(two):
    first, second = map(int, re.search(r"one GPU took (\d+) ms in `gradient` and (\d+) ms", PAGE).groups())
    spans = {"gradient": (0, first), "denoiser": (first, first + second)}
    rows = [(t, name, 0, *span) for t in (0, 1) for name, span in spans.items()]
    events = pd.DataFrame(rows, columns=["iteration", "section", "rank", "start", "end"])
    events = events.assign(**{"busy": events["end"] - events["start"], "collective starts": events["end"], "hidden": 0})
    one = decompose(job(events, 1))
    return scaling({1: (one.table, one.iterations), 2: (two.table, two.iterations)})


@pytest.mark.parametrize("name", [name for name in RELATIVE if name != "untiled_efficiency"])
def test_relative(sweep, name):
    stated = {row["section"]: float(Fraction(row[name])) for _, row in table("relative").iterrows()}
    found = sweep[sweep["gpus"] == 2].set_index("section")[name]
    assert dict(found) == pytest.approx(stated, rel=1e-12)
    assert (sweep.loc[sweep["gpus"] == 1, name] == 1).all()


def test_page_explains_every_column():
    columns = [name for name in {*DECOMPOSITION, *SCALING} if not name.endswith(("_lo", "_hi"))]
    missing = [name for name in columns if f"`{name}`" not in PAGE and name not in ("section", "experiment")]
    assert missing == []
