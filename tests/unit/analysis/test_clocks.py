"""Clocks: a stated offset and drift is found again, and a few late ends do not move it."""

import numpy as np
import pandas as pd
import pytest
from known import MS, job_of, trace_of

from trisect.analysis import clocks, pairing, waits
from trisect.synthetic.ground_truth import SyntheticExchange, SyntheticJob, SyntheticSection

MANY = [(3, 5, 4)] * 20


def aligned(job):
    rows, _ = pairing.pair(trace_of(job).collectives, job.world_size)
    return rows, clocks.align(rows, job.world_size)


def test_offset_and_drift_are_found():
    _, found = aligned(job_of(*MANY, offset_ns=(0, 10**9, -777), drift_ppm=(0, 50, -20)))
    assert list(found.drift * 1e6) == pytest.approx([0, 50, -20], abs=0.05)
    assert found.residual_ns <= 2
    assert found.collectives == 20


def test_aligned_ends_coincide():
    rows, found = aligned(job_of(*MANY, offset_ns=(0, 10**9, -777), drift_ppm=(0, 50, -20)))
    assert clocks.end_spread(rows, found).max() < 5e-9


def test_late_ends_do_not_move_the_line_but_show_in_the_residual():
    rows, _ = aligned(job_of(*MANY))
    late = (rows["rank"] == 1) & rows["iteration"].isin([5, 9, 14, 20])
    found = clocks.align(rows.assign(end_ns=rows["end_ns"] + late * 3 * MS), 3)
    assert list(found.offset_ns) == pytest.approx([0, 0, 0], abs=2)
    assert list(found.drift) == pytest.approx([0, 0, 0], abs=1e-7)
    assert found.residual_ns == pytest.approx(3 * MS, rel=1e-3)  # 10 % of the ends used, so above the 95 % line


def scattered(rows, rng, sigma_ns):
    """Every end but the first rank's moved by noise."""
    noise = rng.normal(0, sigma_ns, len(rows)).astype(int)
    return rows.assign(end_ns=rows["end_ns"] + np.where(rows["rank"] > 0, noise, 0))


def test_the_place_with_the_tightest_ends_is_used():
    exchanges = (SyntheticExchange(3 * MS, MS), SyntheticExchange(3 * MS, MS, payload_bytes=8))
    rows, _ = pairing.pair(
        trace_of(SyntheticJob(3, ((SyntheticSection("s", exchanges),),) * 20, offset_ns=(0, 500, 0))).collectives, 3
    )
    rng = np.random.default_rng(0)
    loose = pd.concat([scattered(part, rng, 1e5 if size == 4096 else 10) for size, part in rows.groupby("bytes")])
    found = clocks.align(loose, 3)
    assert found.collectives == 20
    assert found.residual_ns < 50
    true_ns = found.origin_ns - found.origin_ns[0] + found.offset_ns
    assert list(true_ns) == pytest.approx([0, 500, 0], abs=10)


def test_places_seen_too_few_times_are_not_judged():
    rows, _ = aligned(job_of(*MANY[:3]))
    assert clocks.align(rows, 3).collectives == 3


def test_noise_is_not_taken_for_drift():
    rows, _ = aligned(job_of(*MANY))
    found = clocks.align(scattered(rows, np.random.default_rng(0), 1e4), 3)
    assert list(found.drift) == [0, 0, 0]


@pytest.mark.parametrize("change", [{"op": "broadcast"}, {"group_size": 2}])
def test_nothing_to_align_by(change):
    rows, _ = aligned(job_of(*MANY))
    assert clocks.align(rows.assign(**change), 3) is None


def test_one_collective_gives_offsets_without_drift():
    _, found = aligned(job_of((3, 5), offset_ns=(0, 10**9)))
    assert list(found.drift) == [0, 0]
    assert found.residual_ns == 0


def test_both_ways_to_find_the_wait_agree_only_where_ends_coincide():
    trace = trace_of(job_of((3, 5), (4, 9), (3, 5), (4, 9), offset_ns=(0, 10**9)))
    exposed = waits.expose(pairing.pair(trace.collectives, 2)[0], trace.sections)
    found = clocks.wait_by_clock(exposed, clocks.align(exposed, 2))
    assert found.loc["s", "by_clock"] == pytest.approx((2 + 5 + 2 + 5) / 2 * 1e-3, abs=1e-8)
    assert found.loc["s", "by_duration"] == pytest.approx((2 + 5 + 2 + 5) / 2 * 1e-3, rel=1e-12)


def test_epoch_nanoseconds_keep_their_last_digit():
    ranks, ends = pd.Series([0, 1]), pd.Series([1_790_000_000_000_000_001, 1_790_000_000_000_000_004])
    found = clocks.Clocks(np.array([0, 1]), np.array([1_790_000_000_000_000_000] * 2), np.zeros(2), np.zeros(2), 0, 1)
    assert list(found.align(ranks, ends)) == [1, 4]
