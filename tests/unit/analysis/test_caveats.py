"""Findings: each rule of docs/metrics.md, at its threshold."""

from dataclasses import replace

import pytest
from known import MS, job_of, trace_of

from trisect import wording
from trisect.analysis.decomposition import decompose
from trisect.synthetic.ground_truth import SyntheticExchange, SyntheticJob, SyntheticSection

FIVE = [(3, 5)] * 5


def found(trace):
    return decompose(trace).findings


def changed(**columns):
    trace = trace_of(job_of(*FIVE))
    return replace(trace, readings=trace.readings.assign(**columns))


def mentions(findings, text):
    return any(text in finding for finding in findings)


def test_a_clean_job_states_only_its_clocks():
    assert found(changed()) == ["Clocks of 2 ranks aligned by 5 collectives: 95 % of their ends agree within 0 us."]


def test_a_clean_single_rank_has_nothing_to_say():
    assert found(trace_of(job_of(*[(3,)] * 5))) == []


def test_a_single_rank_broadcasts_to_nobody():
    trace = trace_of(SyntheticJob(1, ((SyntheticSection("s", (SyntheticExchange(MS, MS, op="broadcast"),)),),) * 5))
    assert found(trace) == []
    assert not decompose(trace).table["transfer_is_bound"].any()


def test_repairs():
    one = found(changed(repairs=[1, 0], repaired=["bare_nan x1", ""]))[0]
    assert one == "Rank 0: 1 value mended while reading (bare_nan x1): every number here rests on that."
    both = found(changed(repairs=2, repaired="bare_nan x2"))[0]
    assert both.startswith("Ranks 0, 1: 4 values mended while reading (bare_nan x2 each)")


def test_skipped_iterations():
    assert "Ranks 0, 1: iterations left out: 2 (kernels lost)." in found(changed(skipped_iterations="2 (kernels lost)"))


@pytest.mark.parametrize(("lost", "said"), [(10, False), (11, True)])
def test_unattributed_over_one_percent(lost, said):
    assert mentions(found(changed(device_ns=1000, unattributed_ns=lost)), "belongs to no launch") == said


@pytest.mark.parametrize(("count", "text"), [(1, "Only 1 iteration:"), (4, "Only 4 iterations:"), (5, None)])
def test_few_iterations(count, text):
    findings = found(trace_of(job_of(*FIVE[:count])))
    assert mentions(findings, "Only") == (text is not None)
    assert text is None or mentions(findings, text)


@pytest.mark.parametrize(("later_ms", "said"), [(0.19, False), (0.21, True)])
def test_late_start_uncertain_where_small_ends_do_not_coincide(later_ms, said):
    # The clocks rest on the large collective. The small one comes later on rank 1 every other time and lasts as long:
    # by its duration nobody waits for it, by the clocks rank 0 does, in the mean over ranks and iterations 0.1 ms: 1 %
    # of the span of 10 ms.
    exchanges = (SyntheticExchange((3 * MS, 5 * MS), MS), SyntheticExchange(3 * MS, MS, payload_bytes=8))
    trace = trace_of(SyntheticJob(2, ((SyntheticSection("s", exchanges),),) * 6))
    for frame, columns in ((trace.collectives, ["start_ns", "end_ns"]), (trace.sections, ["end_ns"])):
        late = (
            (frame["rank"] == 1) & (frame["iteration"] % 2 == 0) & (frame["bytes"] == 8 if "bytes" in frame else True)
        )
        frame.loc[late, columns] += int(2 * later_ms * MS)
    assert mentions(found(trace), "late start is uncertain") == said


@pytest.mark.parametrize(
    ("values", "text"),
    [([3], "rank 3"), ([0, 1], "ranks 0, 1"), ([2, 0, 1, 7], "ranks 0 to 2, 7"), (range(64), "ranks 0 to 63")],
)
def test_ranks_in_words(values, text):
    assert wording.ranks(values) == text
