"""Implied rates from transfers that were made with a known one."""

import pandas as pd
import pytest

from trisect.config.machine import Links
from trisect.network.implied_rates import IMPLIED, implied, probed

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
    assert list(table.columns) == IMPLIED
    known = table[table["algorithm"] != "unknown"].set_index("gpus")
    assert known["gb_per_s"].to_dict() == pytest.approx({8: 20, 16: 10, 32: 8})
    assert known["reading"].to_dict() == {8: "tree", 16: "ring", 32: "ring"}
    assert known["fitted_at"].to_dict() == {8: 8, 16: 16, 32: 16}
    assert known["off"].to_dict() == pytest.approx({8: 0, 16: 0, 32: 10 / 8 - 1})  # a fifth slower than predicted
    assert known.loc[16, ["gb_per_s_lo", "gb_per_s_hi"]].tolist() == pytest.approx([8, 10 / 0.9])


def test_a_transfer_whose_interval_reaches_zero_has_a_rate_without_an_upper_end():
    table = implied(MADE.assign(transfer_s_lo=0.0), PER_NODE, KNOWN).set_index("gpus")
    assert table.loc[16, ["gb_per_s", "gb_per_s_lo", "gb_per_s_hi"]].tolist() == pytest.approx([10, 8, float("inf")])


def test_the_machine_s_own_rates_are_beside():
    links = Links(pair_gb_per_s=30, network_gb_per_s={"ring": 9, "tree": 18}, tree_nodes=[2])
    table = implied(MADE, PER_NODE, KNOWN, links).drop_duplicates("gpus").set_index("gpus")
    assert table["machine_gb_per_s"].to_dict() == {4: 90, 8: 18, 16: 9, 32: 9}
    assert implied(MADE, PER_NODE, KNOWN)["machine_gb_per_s"].isna().all()


def test_unknown_assumes_both_algorithms():
    table = implied(MADE, PER_NODE, {})
    at_8 = table[table["gpus"] == 8].set_index("reading")["gb_per_s"]
    assert at_8.to_dict() == pytest.approx({"tree": 20, "ring": 35})  # 1.75 times as many bytes
    assert set(table["algorithm"]) == {"unknown"}
    assert list(table[table["gpus"] == 4]["route"]) == ["inside", "inside"]


def test_an_algorithm_without_a_byte_rule_assumes_both_under_its_name():
    table = implied(MADE, PER_NODE, {("denoiser", 8): "nvls"})
    assert table.loc[table["gpus"] == 8, ["algorithm", "reading"]].to_numpy().tolist() == [
        ["nvls", "ring"],
        ["nvls", "tree"],
    ]


def test_the_probed_rate_is_that_of_the_count_and_algorithm_by_the_fastest_protocol():
    fits = pd.DataFrame(
        [(8, "tree", 15.0), (8, "tree", 19.0), (8, "ring", 9.0), (16, "ring", 11.0)],
        columns=["gpus", "reading", "gb_per_s"],
    )
    table = implied(MADE, PER_NODE, KNOWN)
    beside = table.assign(probed=probed(table, fits)).drop_duplicates("gpus").set_index("gpus")["probed"]
    assert beside.dropna().to_dict() == {8: 19.0, 16: 11.0}
    assert probed(table, None).isna().all()
