"""Implied rates from transfers that were made with a known one; and bad input to `trisect rates`."""

from pathlib import Path

import pandas as pd
import pytest

from trisect import cli
from trisect.config.loading import load_machine
from trisect.config.machine import Links
from trisect.network.implied_rates import IMPLIED, implied, probed
from trisect.pipeline.rates import write_rates
from trisect.results.layout import Layout
from trisect.results.tables import RATES

CONFIG = Path(__file__).parents[3] / "config"
N = 800_000_000


def transfers(**seconds):
    rows = [
        {"section": "denoiser", "gpus": int(gpus[1:]), "payload_bytes": N, "transfer_s": s}
        for gpus, s in ({"n1": 0.0} | seconds).items()
    ]
    table = pd.DataFrame(rows).assign(hidden_s=0.0, iterations=10, oversubscribed=False)
    return table.assign(transfer_s_lo=0.9 * table["transfer_s"], transfer_s_hi=1.25 * table["transfer_s"])


MADE = transfers(n4=2 * N * 3 / 4 / 100e9, n8=N / 20e9, n16=2 * N * 15 / 16 / 10e9, n32=2 * N * 31 / 32 / 8e9)
PER_NODE = dict.fromkeys((1, 4, 8, 16, 32), 4)
KNOWN = {("denoiser", 8): "tree", ("denoiser", 16): "ring", ("denoiser", 32): "ring"}


def test_known_algorithms_give_back_the_rates_and_the_hold_out_error():
    table = implied(MADE, PER_NODE, KNOWN)
    assert tuple(table.columns) == IMPLIED
    known = table[table["algorithm"] != "unknown"].set_index("gpus")
    assert known["gb_per_s"].to_dict() == pytest.approx({8: 20, 16: 10, 32: 8})
    assert known["reading"].to_dict() == {8: "tree", 16: "ring", 32: "ring"}
    assert known["fitted_at"].to_dict() == {8: 8, 16: 16, 32: 16}
    assert known["off"].to_dict() == pytest.approx({8: 0, 16: 0, 32: 10 / 8 - 1})  # a fifth slower than predicted
    assert known.loc[16, ["gb_per_s_lo", "gb_per_s_hi"]].tolist() == pytest.approx([8, 10 / 0.9])


def test_the_machine_s_own_rates_stand_beside():
    links = Links(pair_gb_per_s=30, network_gb_per_s={"ring": 9, "tree": 18}, tree_nodes=[2])
    table = implied(MADE, PER_NODE, KNOWN, links).drop_duplicates("gpus").set_index("gpus")
    assert table["machine_gb_per_s"].to_dict() == {4: 90, 8: 18, 16: 9, 32: 9}
    assert implied(MADE, PER_NODE, KNOWN)["machine_gb_per_s"].isna().all()


def test_unknown_shows_both_readings():
    table = implied(MADE, PER_NODE, {})
    at_8 = table[table["gpus"] == 8].set_index("reading")["gb_per_s"]
    assert at_8.to_dict() == pytest.approx({"tree": 20, "ring": 35})  # 1.75 times as many bytes
    assert set(table["algorithm"]) == {"unknown"}
    assert list(table[table["gpus"] == 4]["route"]) == ["inside", "inside"]


def test_an_algorithm_without_a_byte_rule_shows_both_readings_under_its_name():
    table = implied(MADE, PER_NODE, {("denoiser", 8): "nvls"})
    assert table.loc[table["gpus"] == 8, ["algorithm", "reading"]].to_numpy().tolist() == [
        ["nvls", "ring"],
        ["nvls", "tree"],
    ]


def write(folder, log=None):
    layout = Layout(folder)
    layout.scaling("e").parent.mkdir(parents=True)
    MADE.to_csv(layout.scaling("e"))
    run = layout.run("e", 8)
    if log is not None:
        run.nccl.mkdir(parents=True)
        (run.nccl / "nccl-host-1.log").write_text(log)
        pd.DataFrame([{"section": "denoiser", "op": "all_reduce", "bytes": N}]).to_csv(run.collectives)
    return layout.scaling("e").parent


def command(results, machine="v100"):
    return cli.main(["rates", str(results), "--machine", machine, "--config", str(CONFIG)])


def test_the_log_of_a_run_decides(tmp_path, capsys):
    log = (
        f"nRanks 8 nNodes 2\nAllReduce: {N} Bytes -> Algo TREE proto SIMPLE channel{{Lo..Hi}}={{0..1}}\n{N} Bytes -> Al"
    )
    assert command(write(tmp_path, log)) == 0
    printed = capsys.readouterr().out
    at_8 = [line.split() for line in printed.splitlines() if line.split()[1] == "8"]
    assert [line[3:5] for line in at_8] == [["tree", "tree"]]
    assert "1 lines of the NCCL logs at 8 GPUs were cut" in printed
    assert "No NCCL log says which algorithm ran at 4, 16 and 32 GPUs" in printed


def test_the_probed_rate_is_that_of_the_count_and_reading_by_the_fastest_protocol():
    fits = pd.DataFrame(
        [(8, "tree", 15.0), (8, "tree", 19.0), (8, "ring", 9.0), (16, "ring", 11.0)],
        columns=["gpus", "reading", "gb_per_s"],
    )
    table = implied(MADE, PER_NODE, KNOWN)
    beside = table.assign(probed=probed(table, fits)).drop_duplicates("gpus").set_index("gpus")["probed"]
    assert beside.dropna().to_dict() == {8: 19.0, 16: 11.0}
    assert probed(table, None).isna().all()


def test_rates_csv_has_what_the_page_needs_and_the_probe_beside(tmp_path):
    write(tmp_path, f"{N} Bytes -> Algo TREE proto SIMPLE channel{{Lo..Hi}}={{0..1}}\n{N} Bytes -> Al")
    layout = Layout(tmp_path)
    layout.fits.parent.mkdir()
    pd.DataFrame({"gpus": [8], "reading": ["tree"], "gb_per_s": [21.0]}).to_csv(layout.fits)
    written = write_rates(layout, "e", load_machine("v100", CONFIG))
    table = pd.read_csv(layout.rates("e"))
    pd.testing.assert_frame_equal(table, written, check_dtype=False)
    assert tuple(table.columns) == tuple(RATES)
    at_8 = table[table["gpus"] == 8].iloc[0]
    assert at_8[["experiment", "algorithm", "machine_gb_per_s", "probed_gb_per_s", "cut_lines"]].tolist() == [
        "e",
        "tree",
        17,
        21,
        1,
    ]


def test_where_nothing_moves_rates_csv_has_a_head_alone(tmp_path):
    write(tmp_path)
    layout = Layout(tmp_path)
    transfers().to_csv(layout.scaling("e"))
    assert write_rates(layout, "e", load_machine("v100", CONFIG)).empty
    assert tuple(pd.read_csv(layout.rates("e")).columns) == RATES


def test_on_one_machine_every_rank_is_inside(tmp_path, capsys):
    assert command(write(tmp_path), "laptop") == 0
    assert "between" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (f"nRanks 16 nNodes 4\n{N} Bytes -> Algo 0 proto 2 time 1.0\n", "are of 16 ranks, the run has 8"),
        (None, "not readable as a table"),
    ],
)
def test_bad_input_is_one_line(tmp_path, capsys, log, words):
    results = write(tmp_path, log)
    if log is None:
        (results / "scaling.csv").unlink()
    with pytest.raises(SystemExit):
        command(results)
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_nothing_that_moves_is_said(tmp_path, capsys):
    results = write(tmp_path)
    transfers().to_csv(results / "scaling.csv")
    with pytest.raises(SystemExit):
        command(results)
    assert "no section at 2 or more GPUs" in capsys.readouterr().err
