"""How far off is a prediction? Hosts that each compute alike at every count, on a network that is alike too."""

from __future__ import annotations

import pytest

from trisect.model.fit import Measured, fit
from trisect.model.predict import outline, predict
from trisect.model.validate import beside
from trisect.pipeline.prediction import read_run
from trisect.results.tables import TOTAL

from . import lab
from .conftest import Figure, Found, Launched
from .test_known_network import TOLERANCE

COUNTS = [2, 4, 8]
SHOWN = ("span_s", "compute_s", "transfer_s", "wait_s", "load_balance", "parallel_efficiency")


@pytest.fixture(scope="module", name="runs")
def _runs(launched: Launched, found: Found) -> dict[int, Measured]:
    for n in COUNTS:
        found(lab.ALIKE, n)  # writes what is read here
    return {n: read_run(launched(n).run(lab.ALIKE.name, n), n, per_node=1) for n in COUNTS}


@pytest.mark.parametrize("fitted", [[2], [2, 4]], ids=str)
def test_few_hosts_predict_more(runs: dict[int, Measured], figure: Figure, fitted: list[int]) -> None:
    name = lab.ALIKE.name
    model = fit(outline(name, lab.EXPERIMENT, lab.ALIKE.size), [runs[n] for n in fitted], per_node=lambda _: 1).model
    table = beside(name, predict(model, COUNTS), {n: run.table for n, run in runs.items()}, fitted)
    held_out = table[table["role"] == "held out"]
    for row in held_out.to_dict("records"):
        errors = (f"{k} {row[f'measured_{k}']:.3f} {row[f'error_{k}']:+.1%}" for k in SHOWN)
        figure(f"fitted at {fitted}, {row['gpus']} hosts, {row['section']:8}: {', '.join(errors)}")
    total = held_out[held_out["section"] == TOTAL]
    assert list(total["gpus"]) == [n for n in COUNTS if n not in fitted]
    # The measured transfers at both ends are within TOLERANCE of the wire, as the other tests show.
    assert total["error_transfer_s"].abs().max() < (1 + TOLERANCE) / (1 - TOLERANCE) - 1
