"""Is what is called transfer really data moving? On a network whose rate is set, that can be told.

Every transfer judged here is a median over iterations, within TOLERANCE of what the network makes of its bytes.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest

from trisect.config.machine import AUTO
from trisect.network.byte_rules import RING, bytes_sent
from trisect.pipeline.alpha_beta import write_fits
from trisect.results.record import RunRecord

from . import lab
from .conftest import Figure, Found, Launched
from .network import FRAME_BYTES, SEGMENT_BYTES

TOLERANCE = 0.06
HOSTS = [2, 4]


@pytest.mark.parametrize("mbit", lab.RATES_MBIT_PER_S)
@pytest.mark.parametrize("hosts", HOSTS)
def test_the_implied_rate_is_the_rate_that_was_set(found: Found, figure: Figure, hosts: int, mbit: int) -> None:
    set_gb_per_s = mbit / 8e3
    for section, row in lab.rates(found(lab.BY_RATE[mbit], hosts)).iterrows():
        expected_gb_per_s = row["sent_bytes"] / lab.wire_s(row["sent_bytes"], mbit) / 1e9
        figure(
            f"{hosts} hosts, {section:8}: {mbit} Mbit/s = {set_gb_per_s * 1e3:4.1f} MB/s set, implied"
            f" {row['gb_per_s'] * 1e3:5.2f} ({row['gb_per_s'] / set_gb_per_s - 1:+.1%}; with headers and burst"
            f" {row['gb_per_s'] / expected_gb_per_s - 1:+.1%}; mean iteration {row['mean_gb_per_s'] * 1e3:5.2f})"
        )
        assert row["gb_per_s"] == pytest.approx(set_gb_per_s, rel=TOLERANCE)
        assert row["gb_per_s"] == pytest.approx(expected_gb_per_s, rel=TOLERANCE)


@pytest.mark.parametrize("hosts", HOSTS)
def test_every_rank_has_a_host_of_its_own(launched: Launched, hosts: int) -> None:
    record = RunRecord.read(launched(hosts).run(lab.BASE.name, hosts).record)
    assert [rank.host for rank in record.ranks] == [f"host{k}" for k in range(1, hosts + 1)]


@pytest.mark.parametrize("hosts", HOSTS)
def test_hosts_send_the_bytes_of_a_ring(launched: Launched, found: Found, figure: Figure, hosts: int) -> None:
    """As the kernel counts them, per iteration; the profiler has no part in it."""
    payload = found(lab.BASE, hosts).table.set_index("section")["payload_bytes"]["total"]
    frames_bytes = bytes_sent("all_reduce", RING, payload, hosts, 1).between * FRAME_BYTES / SEGMENT_BYTES
    folder = launched(hosts).run(lab.BASE.name, hosts).folder
    for path in sorted(folder.glob("wire-*.json")):
        counted = json.loads(path.read_text())
        more = counted["bytes"] / counted["iterations"] / frames_bytes - 1
        figure(f"{hosts} hosts, {path.stem}: {counted['bytes'] / counted['iterations']:.0f} bytes sent, {more:+.2%}")
        # At most one acknowledgement, 66 bytes, for each frame of 9014 that comes in, and a few small messages.
        assert 0 <= more <= 0.01


@pytest.mark.parametrize("hosts", HOSTS)
def test_transfer_grows_with_bytes(found: Found, figure: Figure, hosts: int) -> None:
    decompositions = [found(case, hosts) for case in lab.BY_SIZE.values()]
    exponent = slope(
        [lab.rates(one)["sent_bytes"].sum() for one in decompositions],
        [lab.rates(one)["transfer_s"].sum() for one in decompositions],
    )
    figure(f"{hosts} hosts: transfer as bytes to the power of {exponent:.3f}")
    assert exponent == pytest.approx(1, abs=slope_tolerance(4))


@pytest.mark.parametrize("hosts", HOSTS)
def test_transfer_falls_with_the_rate(found: Found, figure: Figure, hosts: int) -> None:
    exponent = slope(
        list(lab.BY_RATE), [lab.rates(found(case, hosts))["transfer_s"].sum() for case in lab.BY_RATE.values()]
    )
    figure(f"{hosts} hosts: transfer as rate to the power of {exponent:.3f}")
    assert exponent == pytest.approx(-1, abs=slope_tolerance(4))


def slope(x: list[float], y: list[float]) -> float:
    """Of a straight line through logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def slope_tolerance(span: float) -> float:
    """How far the slope can be off where the ends, `span` apart with one point halfway, are off by TOLERANCE.

    By least squares over three evenly spaced points the slope is that between the ends.
    """
    return 2 * TOLERANCE / math.log(span)


@pytest.mark.parametrize("hosts", HOSTS)
def test_a_slow_rank_is_wait_and_not_transfer(found: Found, figure: Figure, hosts: int) -> None:
    slow, base = found(lab.SLOW, hosts), found(lab.BASE, hosts)
    here, there = (
        one.iterations[one.iterations["section"] == "denoiser"].median(numeric_only=True) for one in (slow, base)
    )
    compute_s = slow.ranks[slow.ranks["section"] == "denoiser"].groupby("rank")["compute_s"].median()
    others_s = lab.SLOW_S * (hosts - 1) / hosts  # all but one wait for it, and wait is the mean over all
    figure(
        f"{hosts} hosts, last one {lab.SLOW_S} s late: wait {here['wait_s']:.3f} s, {others_s:.3f} s of it made so"
        f" (before {there['wait_s']:.3f}), transfer {here['transfer_s'] / there['transfer_s'] - 1:+.1%}"
    )
    # Besides sleeping, each rank is early or late by its own compute, which is between nothing and the longest.
    awake_s = compute_s.drop(hosts - 1).max()
    assert here["wait_s"] == pytest.approx(others_s, abs=awake_s)
    assert awake_s < others_s / 2, "compute is too long to tell a sleep from it"
    assert here["transfer_s"] == pytest.approx(there["transfer_s"], rel=TOLERANCE)
    table = slow.table.set_index("section").loc["denoiser"]
    assert table["wait_imbalance_s"] > table["wait_s"] / 2  # the same rank every time
    large = slow.collectives[(slow.collectives["section"] == "denoiser") & (slow.collectives["bytes"] > 0)]
    assert set(large["last_rank"]) == {hosts - 1}


def test_a_probe_finds_the_rate(launched: Launched, figure: Figure) -> None:
    layout, hosts = launched(lab.PROBED_HOSTS), lab.PROBED_HOSTS
    write_fits(layout, [lab.sweep(lab.BASE.name).probe(hosts, AUTO)])
    (row,) = pd.read_csv(layout.fits).to_dict("records")
    sizes = pd.read_csv(layout.probe(hosts, AUTO).all_reduce)
    largest = sizes[sizes["payload_bytes"] == sizes["payload_bytes"].max()]
    busbw = largest.set_index("cadence")["busbw_gb_per_s"]
    set_gb_per_s = lab.PROBED_MBIT_PER_S / 8e3
    figure(
        f"{hosts} hosts, probe: {set_gb_per_s * 1e3:.0f} MB/s set, fitted {row['gb_per_s'] * 1e3:.1f}"
        f" ({row['gb_per_s_lo'] * 1e3:.1f} to {row['gb_per_s_hi'] * 1e3:.1f}) and {row['alpha_s'] * 1e3:.2f} ms;"
        f" bus bandwidth of the largest, MB/s: {(busbw * 1e3).round(1).to_dict()}"
    )
    assert row["gb_per_s"] == pytest.approx(set_gb_per_s, rel=TOLERANCE)
    assert list(busbw) == pytest.approx([set_gb_per_s] * 2, rel=TOLERANCE)
