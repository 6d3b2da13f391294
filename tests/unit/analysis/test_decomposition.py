"""Whole decompositions with answers found by hand. The common case stands in docs/metrics.md, executed next door."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from known import MS, job_of, trace_of

from trisect.analysis.decomposition import decompose
from trisect.errors import TrisectError
from trisect.results.notes import note
from trisect.results.tables import DECOMPOSITION, ITERATIONS, RANKS, TIMES, TOTAL
from trisect.synthetic.ground_truth import SyntheticExchange, SyntheticJob, SyntheticSection


def row(job, section="s"):
    return decompose(trace_of(job)).table.set_index("section").loc[section]


def test_table_has_the_contract_columns_and_a_total():
    found = decompose(trace_of(job_of((3, 5), (4, 4))))
    assert list(found.table.columns) == list(DECOMPOSITION)
    assert list(found.table["section"]) == ["s", TOTAL]
    assert set(found.iterations.columns) == set(ITERATIONS)
    assert list(found.ranks.columns) == list(RANKS)


def test_several_collectives_are_paired_one_by_one():
    # Ranks take turns at being late: both compute 6 ms, each waits 4 ms once. Paired as one lump, no wait would show.
    exchanges = (
        SyntheticExchange((1 * MS, 5 * MS), 1 * MS),
        SyntheticExchange((5 * MS, 1 * MS), 2 * MS, payload_bytes=8),
    )
    found = row(SyntheticJob(2, ((SyntheticSection("s", exchanges),),)))
    assert found["span_s"] == pytest.approx(13e-3)
    assert found["compute_s"] == found["compute_max_s"] == pytest.approx(6e-3)
    assert found["transfer_s"] == pytest.approx(3e-3)
    assert found["wait_s"] == found["wait_imbalance_s"] == pytest.approx(4e-3)
    assert found["load_balance"] == pytest.approx(1)
    assert found["serialization_efficiency"] == pytest.approx(6 / 10)  # the critical path hops between the ranks
    assert found["transfer_efficiency"] == pytest.approx(10 / 13)


def test_a_section_that_comes_back_is_summed():
    trace = trace_of(job_of((3, 5)))
    again_sections = trace.sections.assign(occurrence=1)
    again_collectives = trace.collectives.assign(occurrence=1)
    for frame in (again_sections, again_collectives):
        frame[["start_ns", "end_ns"]] += 100 * MS
    twice = replace(
        trace,
        sections=pd.concat([trace.sections, again_sections]),
        collectives=pd.concat([trace.collectives, again_collectives]),
    )
    once, both = decompose(trace).table, decompose(twice).table
    for name in ("span_s", "compute_s", "transfer_s", "wait_s", "wait_imbalance_s", "collectives"):
        assert both.loc[0, name] == pytest.approx(2 * once.loc[0, name])


def test_a_section_of_some_iterations_counts_zero_in_the_others():
    first, second = job_of((3, 5)).iterations[0], job_of((2, 2), name="u").iterations[0]
    job = SyntheticJob(2, ((*first, *second), first))
    table = decompose(trace_of(job)).table.set_index("section")
    assert table.loc["u", "span_s"] == pytest.approx(3e-3 / 2)
    assert table.loc[TOTAL, "span_s"] == pytest.approx(6e-3 + 3e-3 / 2)
    assert len(decompose(trace_of(job)).iterations) == 4


def test_one_rank_has_neither_wait_nor_causes():
    found = row(job_of((3,), (5,)))
    assert (found["compute_s"], found["transfer_s"]) == (pytest.approx(4e-3), pytest.approx(1e-3))
    assert found["wait_s"] == found["wait_imbalance_s"] == found["wait_jitter_s"] == found["wait_late_start_s"] == 0
    assert found["load_balance"] == 1


def test_no_collective_at_all():
    trace = trace_of(SyntheticJob(2, ((SyntheticSection("s", (), tail_ns=(3 * MS, 5 * MS)),),) * 2))
    result = decompose(trace)
    found = result.table.set_index("section").loc["s"]
    assert (found["span_s"], found["compute_max_s"]) == (pytest.approx(4e-3), pytest.approx(5e-3))
    assert found["transfer_s"] == found["wait_s"] == found["wait_late_start_s"] == 0
    assert result.collectives.empty
    assert np.isnan(result.clock_residual_s)


def test_groups_count_by_their_share_of_the_ranks():
    # Ranks 0 and 1 exchange, rank 1 is 4 ms late; ranks 2 and 3 exchange with nothing to wait for.
    exchanges = (
        SyntheticExchange((2 * MS, 6 * MS, 0, 0), 1 * MS, payload_bytes=100, group="1", ranks=(0, 1)),
        SyntheticExchange((0, 0, 3 * MS, 3 * MS), 3 * MS, payload_bytes=300, group="2", ranks=(2, 3)),
    )
    found = row(SyntheticJob(4, ((SyntheticSection("s", exchanges),),), flavour="nccl", barrier_ns=MS))
    assert found["transfer_s"] == pytest.approx((1 + 1 + 3 + 3) / 4 * 1e-3)
    assert found["wait_s"] == found["wait_imbalance_s"] == pytest.approx(4e-3 / 4)
    assert found["payload_bytes"] == (100 + 100 + 300 + 300) / 4
    assert found["collectives"] == 1


def test_send_and_recv_are_transfer_and_flagged():
    trace = trace_of(job_of((3, 5)))
    trace = replace(trace, collectives=trace.collectives.assign(op=["send", "recv"], seq=[7, 3]))
    result = decompose(trace)
    found = result.table.set_index("section").loc["s"]
    assert found["transfer_s"] == pytest.approx((3 + 1) / 2 * 1e-3)
    assert found["wait_s"] == found["wait_late_start_s"] == 0
    assert found["transfer_is_bound"]
    assert note("point_to_point", section="s", ops=["recv", "send"]) in result.caveats
    assert len(result.collectives) == 2


def test_rooted_transfer_is_flagged_with_its_share():
    exchanges = (SyntheticExchange(2 * MS, 1 * MS, op="broadcast"), SyntheticExchange(MS, 3 * MS))
    result = decompose(trace_of(SyntheticJob(2, ((SyntheticSection("s", exchanges),),))))
    assert result.table["transfer_is_bound"].all()
    assert note("rooted_collectives", section="s", ops=["broadcast"], share=0.25) in result.caveats


def test_no_clock_no_late_start():
    trace = trace_of(
        SyntheticJob(2, ((SyntheticSection("s", (SyntheticExchange((MS, 2 * MS), MS, op="broadcast"),)),),) * 2)
    )
    result = decompose(trace)
    assert result.table["wait_late_start_s"].isna().all()
    assert note("no_common_clock") in result.caveats
    assert result.table["wait_s"].notna().all()


def test_per_rank_frame_shows_who_waited():
    ranks = decompose(trace_of(job_of((3, 5)))).ranks.set_index("rank")
    assert ranks.loc[0, "wait_s"] == pytest.approx(2e-3)
    assert ranks.loc[1, "wait_s"] == 0
    assert list(ranks["compute_s"]) == pytest.approx([3e-3, 5e-3])


def test_one_iteration_has_no_bounds_and_two_have():
    one, two = row(job_of((3, 5))), row(job_of((3, 5), (4, 8)))
    names = [f"{name}_{end}" for name in TIMES for end in ("lo", "hi")]
    assert one[names].isna().all()
    assert two[names].notna().all()
    assert two["span_s_lo"] == pytest.approx(6e-3)
    assert two["span_s_hi"] == pytest.approx(9e-3)


def test_a_section_named_as_the_total_is_refused():
    with pytest.raises(TrisectError, match="'total'"):
        decompose(trace_of(job_of((3, 5), name="total")))


def test_more_communication_than_section_is_refused():
    trace = trace_of(job_of((3, 5)))
    trace.collectives.loc[1, "start_ns"] -= 10 * MS
    with pytest.raises(TrisectError, match="rank 1, iteration 3, section 's'"):
        decompose(trace)


def test_unattributed_time_and_repairs_are_carried():
    trace = trace_of(job_of((3, 5)))
    readings = trace.readings.assign(device_ns=1000, unattributed_ns=[30, 0], repairs=[2, 1])
    table = decompose(replace(trace, readings=readings)).table
    assert (table["unattributed_share"] == 30 / 2000).all()
    assert (table["repairs"] == 3).all()
