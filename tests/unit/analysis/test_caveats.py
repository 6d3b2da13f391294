"""Caveats of a job: each rule of docs/metrics.md, at its threshold."""

from dataclasses import replace

import pytest
from known import MS, job_of, trace_of

from trisect.analysis.decomposition import decompose
from trisect.results.notes import note
from trisect.synthetic.ground_truth import SyntheticExchange, SyntheticJob, SyntheticSection

FIVE = [(3, 5)] * 5


def found(trace):
    return decompose(trace).caveats


def changed(**columns):
    trace = trace_of(job_of(*FIVE))
    return replace(trace, readings=trace.readings.assign(**columns))


def test_a_clean_job_states_only_its_clocks():
    assert found(changed()) == [note("clocks_aligned", ranks=2, collectives=5, residual_s=0.0)]


def test_a_clean_single_rank_has_nothing_to_say():
    assert found(trace_of(job_of(*[(3,)] * 5))) == []


def test_a_single_rank_broadcasts_to_nobody():
    trace = trace_of(SyntheticJob(1, ((SyntheticSection("s", (SyntheticExchange(MS, MS, op="broadcast"),)),),) * 5))
    assert found(trace) == []
    assert not decompose(trace).table["transfer_is_bound"].any()


def repaired(rank, count):
    return note("repaired", rank=rank, count=count, kinds=f"bare_nan x{count}")


def test_notes_that_say_the_same_of_several_ranks_are_one():
    trace = changed()
    skipped = [{"iteration": 2, "lost": 3, "launched": 40}]
    apart = replace(trace, notes=[repaired(0, 1), repaired(1, 2)])
    assert [one.values["ranks"] for one in found(apart) if one.kind == "repaired"] == [[0], [1]]
    alike = [repaired(0, 2), repaired(1, 2), note("iterations_skipped", rank=1, skipped=skipped)]
    both, lost, _ = found(replace(trace, notes=alike))
    assert (both.kind, both.values["ranks"], both.values["count"]) == ("repaired", [0, 1], 2)
    assert (lost.kind, lost.values["ranks"], lost.values["skipped"]) == ("iterations_skipped", [1], skipped)


@pytest.mark.parametrize(("lost", "said"), [(10, False), (11, True)])
def test_unattributed_over_one_percent(lost, said):
    notes = [one for one in found(changed(device_ns=1000, unattributed_ns=lost)) if one.kind == "unattributed"]
    assert notes == [note("unattributed", share=lost / 1000)] * said


@pytest.mark.parametrize(
    ("count", "said"), [(1, [note("one_iteration")]), (4, [note("few_iterations", count=4, needed=5)]), (5, [])]
)
def test_few_iterations(count, said):
    assert [one for one in found(trace_of(job_of(*FIVE[:count]))) if "iteration" in one.kind] == said


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
    uncertain = [one.values for one in found(trace) if one.kind == "late_start_uncertain"]
    assert len(uncertain) == said
    if said:
        assert uncertain[0]["section"] == "s"
        assert uncertain[0]["by_clock_s"] - uncertain[0]["by_duration_s"] == pytest.approx(later_ms / 2 * 1e-3)
