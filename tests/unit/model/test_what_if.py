"""What a change does to the answers: by hand where the arithmetic is short, else by what must hold."""

import pandas as pd
import pytest

from trisect.model.predict import of_machine, predict
from trisect.model.what_if import CHANGES, OVERLAP, crossing, overlapped, reach, what_if

COUNTS = [1, 2, 4, 8, 16, 32, 64, 128, 256]


def totals(*rows):
    names = ["gpus", "compute_s", "transfer_s", "wait_s", "compute_max_s", "parallel_efficiency"]
    return pd.DataFrame(rows, columns=names).assign(section="total")


def test_reach_interpolates_between_counts():
    table = totals((1, 1, 0, 0, 1, 1.0), (4, 1, 0, 0, 1, 0.9), (16, 1, 0, 0, 1, 0.7))
    assert reach(table, 0.8) == pytest.approx(8)  # half-way from 4 to 16 on a logarithmic axis
    assert reach(table, 0.7) == 16
    assert reach(table, 0.5) == 16
    assert reach(table.iloc[2:], 0.8) == 0


def test_crossing_interpolates_between_counts():
    table = totals((4, 1, 0.8, 0, 1, 1), (16, 1, 1.2, 0, 1, 1))
    assert crossing(table) == pytest.approx(8)
    assert crossing(table.iloc[:1]) == 4
    assert crossing(table.iloc[1:]) == 0


def test_overlap_hides_what_fits_section_by_section():
    # section, gpus, compute, transfer, wait, compute_max: 1 s of 3 sticks out of the first, nothing of the second
    rows = [("a", 8, 1.5, 3.0, 0.5, 2.0), ("b", 8, 4.0, 3.0, 0.0, 4.0), ("total", 8, 5.5, 6.0, 0.5, 6.0)]
    names = ["section", "gpus", "compute_s", "transfer_s", "wait_s", "compute_max_s"]
    found = overlapped(pd.DataFrame(rows, columns=names)).iloc[0]
    assert found["transfer_s"] == 1.0
    assert found["span_s"] == 7.0
    assert found["parallel_efficiency"] == pytest.approx(5.5 / 7)


def test_each_change_changes_what_its_name_says(problems, v100):
    model = of_machine(problems["training_2d"], v100, v100.links)
    before = predict(model, [64]).iloc[-1]
    after = {}
    for kind, change in CHANGES.items():
        after[kind] = predict(change(model), [64]).iloc[-1]
    assert after["as_is"].equals(before)
    assert after["more_compute"]["compute_s"] == pytest.approx(2 * before["compute_s"])
    assert after["more_compute"]["transfer_s"] == before["transfer_s"]
    finer = after["finer_operators"]
    assert finer["compute_s"] == pytest.approx(before["compute_s"], rel=1e-3)  # another draw weighs them otherwise
    assert finer["wait_s"] < 0.5 * before["wait_s"]
    latency = predict(
        of_machine(problems["training_2d"], v100, v100.links.model_copy(update={"step_us": 0})), [64]
    ).iloc[-1]
    bytes_s = latency["transfer_s"]
    for kind in ("half_payload", "faster_network"):
        assert before["transfer_s"] - after[kind]["transfer_s"] == pytest.approx(bytes_s / 2, rel=1e-6)


def test_every_change_helps_and_the_first_is_none(problems, v100):
    now, *changed = what_if(of_machine(problems["inference_2d"], v100, v100.links), COUNTS, 64)
    assert [now.change, *(one.change for one in changed)] == [*CHANGES, OVERLAP]
    assert 8 <= now.pays < 16 < now.half < 64 < now.crossing < 128
    assert all(one.efficiency > now.efficiency for one in changed)
