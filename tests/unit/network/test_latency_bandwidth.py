"""Fits of times that were made with a known latency and rate."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trisect.network.latency_bandwidth import NoFitError, fit, fits
from trisect.network.nccl_log import read_tuning
from trisect.results.notes import note
from trisect.results.tables import ALL_REDUCE, FITS, as_table

SIZES = 1024.0 * 2 ** np.arange(21)  # 1 KB to 1 GB


def times(alpha_s, gb_per_s, sizes=SIZES, noise=0.0, seed=0):
    """Of bytes sent; `noise` is the standard deviation of the time's logarithm."""
    rng = np.random.default_rng(seed)
    return (alpha_s + sizes / (gb_per_s * 1e9)) * np.exp(noise * rng.standard_normal(len(sizes)))


def holds(found, alpha_s, gb_per_s):
    return np.array(
        [
            found["alpha_s_lo"] <= alpha_s <= found["alpha_s_hi"],
            found["gb_per_s_lo"] <= gb_per_s <= found["gb_per_s_hi"],
        ]
    )


@settings(max_examples=60, deadline=None)
@given(alpha_us=st.floats(2, 2000), gb_per_s=st.floats(0.05, 400))
def test_times_without_noise_give_back_what_made_them(alpha_us, gb_per_s):
    found = fit(SIZES, times(alpha_us * 1e-6, gb_per_s))
    assert (found["alpha_s"], found["gb_per_s"]) == pytest.approx((alpha_us * 1e-6, gb_per_s), rel=1e-4)
    assert found["residual"] < 1e-4
    assert found["r2"] == pytest.approx(1)


@settings(max_examples=40, deadline=None)
@given(alpha_us=st.floats(20, 500), gb_per_s=st.floats(0.05, 100), noise=st.floats(0.01, 0.3), seed=st.integers(0, 99))
def test_intervals_are_ordered_and_positive(alpha_us, gb_per_s, noise, seed):
    found = fit(SIZES, times(alpha_us * 1e-6, gb_per_s, noise=noise, seed=seed))
    assert 0 < found["alpha_s_lo"] < found["alpha_s"] < found["alpha_s_hi"]
    assert 0 < found["gb_per_s_lo"] < found["gb_per_s"] < found["gb_per_s_hi"]


@pytest.mark.parametrize(("sizes", "noise"), [(SIZES, 0.05), (SIZES, 0.3), (SIZES[4:20:3], 0.1)])
def test_a_95_percent_interval_holds_the_truth_95_times_in_100(sizes, noise):
    draws = 400
    held = sum(holds(fit(sizes, times(3e-5, 8, sizes, noise, seed)), 3e-5, 8) for seed in range(draws)) / draws
    chance = 4 * np.sqrt(0.95 * 0.05 / draws)  # a right interval fails this once in 8,000 times
    assert np.abs(held - 0.95).max() < chance, held


def test_one_time_that_is_off_is_the_residual():
    made = times(3e-5, 8)
    made[10] *= 1.5
    found = fit(SIZES, made)
    assert 0.3 < found["residual"] < 0.5
    assert found["r2"] < 1


@pytest.mark.parametrize(
    ("sizes", "why"),
    [
        (SIZES[:1], note("too_few_sizes", sizes=1, needed=3)),
        (SIZES[[0, 20]], note("too_few_sizes", sizes=2, needed=3)),
        (np.repeat(SIZES[:2], 5), note("too_few_sizes", sizes=2, needed=3)),
        (SIZES[:3], note("no_rate")),  # 4 KB at 10 GB/s: 0.4 us of 100
        (SIZES[-4:], note("no_latency")),  # 128 MB: 13 ms and 0.1
    ],
)
def test_what_does_not_carry_a_fit_is_refused(sizes, why):
    with pytest.raises(NoFitError) as refused:
        fit(sizes, times(1e-4, 10, sizes))
    assert refused.value.why == why


def probe(gpus, nodes, seconds, backend="nccl", algorithm="chosen", sizes=SIZES):
    """tables.ALL_REDUCE with these median times; those streamed are half of them and must not matter."""
    rows = [
        dict.fromkeys(ALL_REDUCE, 0)
        | {"gpus": gpus, "nodes": nodes, "backend": backend, "algorithm": algorithm, "cadence": cadence}
        | {"payload_bytes": size, "median_s": factor * second}
        for cadence, factor in (("separated", 1.0), ("back_to_back", 0.5))
        for size, second in zip(sizes, seconds, strict=True)
    ]
    return as_table(rows, ALL_REDUCE)


LOG = "h:1:1 [0] NCCL INFO comm 0x5 rank 0 nRanks 8 nNodes 2 localRanks 4 localRank 0\n"


def line(size, algorithm, protocol):
    said = f"AllReduce: {size:.0f} Bytes -> Algo {algorithm} proto {protocol} channel{{Lo..Hi}}={{0..1}}"
    return f"h:1:1 [0] NCCL INFO {said}\n"


def test_gloo_is_a_ring_of_one_piece():
    found, refused = fits(probe(4, 1, times(2e-4, 0.5, SIZES * 1.5), "gloo"), None, "")
    assert list(found.columns) == list(FITS)
    (row,) = found.to_dict("records")
    assert (row["ran"], row["reading"], row["protocol"], row["nccl_version"]) == ("ring", "ring", "gloo", "none")
    assert (row["alpha_s"], row["gb_per_s"]) == pytest.approx((2e-4, 0.5), rel=1e-4)
    assert row["crossover_bytes"] == pytest.approx(2e-4 * 0.5e9 / 1.5, rel=1e-4)  # 1.5 bytes are sent per payload byte
    assert (row["sizes"], row["smallest_bytes"], row["largest_bytes"]) == (21, 1024, 1 << 30)
    assert refused == []


def test_each_protocol_has_a_line_of_its_own():
    """8 GPUs on 2 nodes: LL in a tree up to 512 KB, then Simple in a ring; bytes between nodes."""
    log = LOG + "".join(line(size, "TREE", "LL") if size < 1e6 else line(size, "RING", "SIMPLE") for size in SIZES)
    small, large = SIZES[SIZES < 1e6], SIZES[SIZES > 1e6]
    made = np.concatenate([times(1e-5, 4, small * 2 * 1 / 2), times(5e-5, 11, large * 2 * 7 / 8)])
    found, refused = fits(probe(8, 2, made), read_tuning(log)[0], "2.21.5")
    found = found.set_index("protocol")
    assert found["ran"].to_dict() == {"ll": "tree", "simple": "ring"} == found["reading"].to_dict()
    assert found["alpha_s"].to_dict() == pytest.approx({"ll": 1e-5, "simple": 5e-5}, rel=1e-3)
    assert found["gb_per_s"].to_dict() == pytest.approx({"ll": 4, "simple": 11}, rel=1e-3)
    assert found["sizes"].to_dict() == {"ll": 10, "simple": 11}
    assert set(found["nccl_version"]) == {"2.21.5"}
    assert refused == []


def test_a_protocol_of_two_sizes_is_refused_and_the_others_are_fitted():
    log = LOG + "".join(line(size, "RING", "LL" if size < 3000 else "SIMPLE") for size in SIZES)
    found, refused = fits(probe(8, 2, times(5e-5, 11)), read_tuning(log)[0], "2.21.5")
    assert list(found["protocol"]) == ["simple"]
    about = {"gpus": 8, "algorithm": "chosen", "ran": "ring", "protocol": "ll"}
    why = note("too_few_sizes", sizes=2, needed=3)
    assert refused == [note("no_fit", **about, why=why.model_dump())]


@pytest.mark.parametrize("tuning", [None, read_tuning(LOG)[0]])
def test_without_a_log_both_algorithms_are_assumed(tuning):
    found, _ = fits(probe(8, 2, times(5e-5, 11, SIZES * 7 / 4)), tuning, "2.21.5")
    assert set(found["ran"]) == set(found["protocol"]) == {"unknown"}
    rates = found.set_index("reading")["gb_per_s"].to_dict()
    assert rates == pytest.approx({"ring": 11, "tree": 11 * 4 / 7}, rel=1e-3)
    assert found["crossover_bytes"].tolist() == pytest.approx([5e-5 * 11e9 * 4 / 7] * 2, rel=1e-3)


def test_an_algorithm_without_a_byte_rule_has_both_assumed_under_its_name():
    log = LOG + "".join(line(size, "NVLS", "SIMPLE") for size in SIZES)
    found, _ = fits(probe(8, 2, times(5e-5, 11)), read_tuning(log)[0], "2.21.5")
    assert found[["ran", "reading"]].to_numpy().tolist() == [["nvls", "ring"], ["nvls", "tree"]]


def test_what_the_log_says_counts_and_not_what_was_asked_for():
    log = LOG + "".join(line(size, "RING", "SIMPLE") for size in SIZES)
    found, _ = fits(probe(8, 2, times(5e-5, 11), algorithm="tree"), read_tuning(log)[0], "2.21.5")
    assert found[["algorithm", "ran"]].to_numpy().tolist() == [["tree", "ring"]]


def test_one_gpu_sends_nothing():
    found, refused = fits(probe(1, 1, times(5e-5, 11)), None, "2.21.5")
    assert found.empty
    assert refused == []
