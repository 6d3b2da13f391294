"""How far off is a prediction? Hosts that each compute alike at every count, on a network that is alike too."""

from __future__ import annotations

from trisect.comm.fit import fit
from trisect.comm.held_out import beside
from trisect.comm.model import outline, predict
from trisect.files.prediction import read_run
from trisect.tables import TOTAL

from . import lab
from .conftest import Figure, Found, Launched
from .test_known_network import TOLERANCE

COUNTS = [2, 4, 8]
SHOWN = ("span_s", "compute_s", "transfer_s", "wait_s", "load_balance", "parallel_efficiency")


def test_two_hosts_predict_more(launched: Launched, found: Found, figure: Figure) -> None:
    runs = {}
    for n in COUNTS:
        found(lab.ALIKE, n)  # writes what is read here
        runs[n] = read_run(launched(n).run(lab.ALIKE.name, n), n, per_node=1)
    name = lab.ALIKE.name
    fitted = fit(outline(name, lab.EXPERIMENT, lab.ALIKE.size), [runs[2]], per_node=lambda _: 1)
    tables = {n: run.table for n, run in runs.items()}
    table = beside(name, predict(fitted.model, COUNTS), tables, fitted=[2])
    for row in table.to_dict("records"):
        errors = (f"{k} {row[f'measured_{k}']:.3f} {row[f'error_{k}']:+.1%}" for k in SHOWN)
        figure(f"{row['gpus']} hosts, {row['section']:8} ({row['role']}): {', '.join(errors)}")
    held_out = table[(table["role"] == "held out") & (table["section"] == TOTAL)]
    assert list(held_out["gpus"]) == [4, 8]
    # The measured transfers at both ends are within TOLERANCE of the wire, as the other tests show.
    assert held_out["error_transfer_s"].abs().max() < (1 + TOLERANCE) / (1 - TOLERANCE) - 1
