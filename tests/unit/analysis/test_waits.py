"""Wait by cause, on tables small enough to see the answer."""

from dataclasses import replace

import numpy as np
import pytest
from known import MS, job_of, trace_of

from trisect.analysis import pairing, waits
from trisect.analysis.decomposition import decompose
from trisect.synthetic.ground_truth import SyntheticExchange, SyntheticJob, SyntheticSection


def causes(job):
    found = decompose(trace_of(job)).table.set_index("section").loc["s"]
    return [found[f"wait_{cause}_s"] * 1e3 for cause in ("imbalance", "jitter", "late_start")] + [found["wait_s"] * 1e3]


def test_same_rank_late_every_time_is_imbalance():
    assert causes(job_of((2, 6), (2, 6), (2, 6))) == pytest.approx([2, 0, 0, 2], abs=1e-9)


def test_another_rank_late_each_time_is_jitter():
    assert causes(job_of((2, 6), (6, 2))) == pytest.approx([0, 2, 0, 2], abs=1e-9)


def test_same_work_after_another_start_is_late_start():
    section = SyntheticSection("s", (SyntheticExchange(3 * MS, MS),), late_ns=(0, 4 * MS))
    assert causes(SyntheticJob(2, ((section,),) * 2, barrier_ns=MS)) == pytest.approx([0, 0, 2, 2], abs=1e-9)


def test_late_start_that_less_work_makes_up_for_is_negative():
    section = SyntheticSection("s", (SyntheticExchange((5 * MS, 1 * MS), MS),), late_ns=(0, 4 * MS))
    assert causes(SyntheticJob(2, ((section,),) * 2, barrier_ns=MS)) == pytest.approx([2, 0, -2, 0], abs=1e-9)


def test_all_three_at_once():
    # c: rank 0 has 2 then 6 ms, rank 1 has 8 then 6 ms: means 4 and 7, mean 5.5, maxima 8 and 6.
    # Rank 1 starts 2 ms late: arrivals 2 and 10, then 6 and 8 ms: waits 8 and 2 on rank 0, mean over ranks 2.5.
    sections = [
        SyntheticSection("s", (SyntheticExchange((a * MS, b * MS), MS),), late_ns=(0, 2 * MS))
        for a, b in ((2, 8), (6, 6))
    ]
    job = SyntheticJob(2, tuple((section,) for section in sections), barrier_ns=MS)
    assert causes(job) == pytest.approx([1.5, 0, 1, 2.5], abs=1e-9)


def test_hidden_communication_is_no_wait():
    # Both collectives last 3 ms, 2 of them under compute on both ranks; rank 1 arrives 1 ms later.
    trace = trace_of(
        SyntheticJob(2, ((SyntheticSection("s", (SyntheticExchange((1 * MS, 2 * MS), 3 * MS, hidden_ns=2 * MS),)),),))
    )
    exposed = waits.expose(pairing.pair(trace.collectives, 2)[0], trace.sections).set_index("rank")
    assert list(exposed["exposed_ns"]) == [2 * MS, 1 * MS]
    assert list(exposed["transfer_ns"]) == [MS, MS]
    assert list(exposed["c_ns"]) == [3 * MS, 4 * MS]


def test_c_counts_from_the_end_of_the_collective_before():
    exchanges = (
        SyntheticExchange((1 * MS, 5 * MS), 1 * MS),
        SyntheticExchange((5 * MS, 1 * MS), 2 * MS, payload_bytes=8),
    )
    trace = trace_of(SyntheticJob(2, ((SyntheticSection("s", exchanges),),)))
    exposed = waits.expose(pairing.pair(trace.collectives, 2)[0], trace.sections)
    assert list(exposed.sort_values(["rank", "start_ns"])["c_ns"]) == [1 * MS, 5 * MS, 5 * MS, 1 * MS]


def test_c_counts_from_the_latest_end_where_collectives_overlap():
    exchanges = tuple(SyntheticExchange(2 * MS, MS, payload_bytes=size) for size in (400, 8, 4))
    trace = trace_of(SyntheticJob(1, ((SyntheticSection("s", exchanges),),)))
    start = trace.sections["start_ns"][0]
    ends = [10, 5, 14]  # the second runs from 3 to 5 ms, all of it under the first
    trace = replace(
        trace,
        collectives=trace.collectives.assign(
            start_ns=[start + at * MS for at in (1, 3, 12)],
            end_ns=[start + at * MS for at in ends],
            hidden_ns=[0, 2 * MS, 0],
        ),
    )
    exposed = waits.expose(pairing.pair(trace.collectives, 1)[0], trace.sections)
    assert list(exposed["exposed_ns"]) == [9 * MS, 0, 2 * MS]
    assert exposed["c_ns"].iloc[2] == 2 * MS


def test_pure_noise_passes_for_imbalance_by_one_over_root_of_iterations():
    noise = np.random.default_rng(0).normal(10, 1, size=(9, 4000))
    slot = waits.Slot(noise, 1.0)
    even = np.full((1, 9), 1 / 9)
    share = waits.imbalance([slot], even)[0] / waits.arrival_spread([slot], 9).mean()
    assert share == pytest.approx(1 / 3, rel=0.1)


def test_weights_choose_iterations():
    slot = waits.Slot(np.array([[2.0, 6.0], [6.0, 2.0]]), 0.5)
    weights = np.array([[0.5, 0.5], [1.0, 0.0]])
    assert list(waits.imbalance([slot], weights)) == [0, 0.5 * 2]
    assert list(waits.arrival_spread([slot], 2)) == [1, 1]
