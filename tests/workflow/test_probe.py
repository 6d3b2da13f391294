"""The probe on two real ranks, from nothing to a fit; a result that is wrong; orders that cannot be carried out."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from trisect.config.loading import load_machine
from trisect.config.plan import ProbeRun
from trisect.errors import TrisectError
from trisect.launch.job import Job
from trisect.launch.run_job import run_job
from trisect.results.layout import Layout, ProbeLayout
from trisect.results.record import ProbeRecord
from trisect.results.tables import ALL_REDUCE, FITS

from .conftest import REPOSITORY, Project, make_project

SHORT = {"smallest_bytes": 1024, "largest_bytes": 1 << 22, "repetitions": 10, "seconds": 3.0}
SIZES = [1 << k for k in range(10, 23)]


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project at 2 ranks whose probe has been run; tests must not change its results."""
    project = make_project(tmp_path_factory.mktemp("probed"))
    project.edit("machines/laptop.yaml", lambda c: c.update(probe=SHORT))
    project.edit("config.yaml", lambda c: c.update(gpus=[2]))
    done = project.snakemake("probe")
    assert done.returncode == 0, done.stdout[-5000:]
    return project


def test_every_size_is_measured_in_both_cadences(probed: Project) -> None:
    files = Layout(probed.folder / "results").probe(2, "chosen")
    table = pd.read_csv(files.all_reduce)
    assert list(table.columns) == list(ALL_REDUCE)
    record = ProbeRecord.read(files.record)
    assert record.payload_bytes == SIZES[: len(record.payload_bytes)]
    assert record.payload_bytes == SIZES or record.left_out
    for cadence in ("separated", "back_to_back"):
        rows = table[table["cadence"] == cadence]
        assert list(rows["payload_bytes"]) == record.payload_bytes
        assert (rows["min_s"] > 0).all()
    busbw = table["payload_bytes"] / table["median_s"] / 1e9  # 2 (n - 1) / n is 1 at 2 ranks
    pd.testing.assert_series_equal(table["busbw_gb_per_s"], busbw, check_names=False)
    assert (table["wrong"] == 0).all()
    assert record.checked > table["repetitions"].sum()
    assert [place.rank for place in record.ranks] == [0, 1]
    assert not files.traces.exists()


def test_the_fit_holds_what_was_measured(probed: Project) -> None:
    layout = Layout(probed.folder / "results")
    (row,) = pd.read_csv(layout.fits).to_dict("records")
    assert tuple(row) == tuple(FITS)
    assert (row["gpus"], row["nodes"], row["ran"], row["protocol"]) == (2, 1, "ring", "gloo")
    table = pd.read_csv(layout.probe(2, "chosen").all_reduce)
    alone = table[table["cadence"] == "separated"]
    line = row["alpha_s"] + alone["payload_bytes"] / (row["gb_per_s"] * 1e9)
    assert (alone["median_s"] / line - 1).abs().max() == pytest.approx(row["residual"], rel=1e-6)


def test_another_limit_measures_again(probed: Project) -> None:
    probed.edit("machines/laptop.yaml", lambda c: (c["probe"].update(repetitions=11), c.update(nodes=16)))
    planned = probed.snakemake("-n", "probe").stdout
    probed.edit("machines/laptop.yaml", lambda c: (c["probe"].update(repetitions=10), c.pop("nodes")))
    assert "Params have changed" in planned
    assert "all_reduce" in planned


def test_a_wrong_result_fails_the_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank 1 gets one wrong value in an all_reduce of 4,096 bytes: rank and size are named, nothing is kept."""
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY / "tests"))
    machine = load_machine("laptop", REPOSITORY / "config")
    files = ProbeLayout(tmp_path / "gpus-2" / "chosen")
    run = {"gpus": 2, "device": "cpu", "backend": "gloo", "environment": {}, "collective_timeout_s": 60}
    payload = ProbeRun(**run, **SHORT, algorithm="chosen").payload()
    with pytest.raises(TrisectError) as raised:
        run_job(Job("probe", "standins:probe_corrupted", payload, 2, 3), machine, files, print)
    first = str(raised.value).splitlines()[0]
    assert "all_reduce of 4096 bytes (isolated): 1 of " in first
    assert " results on rank 1 are wrong, in up to 1 values" in first
    assert not files.record.exists()
    assert not files.all_reduce.exists()
