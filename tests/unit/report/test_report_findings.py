"""The rules of docs/report.md, each at its threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import fabricated
import pandas as pd
import pytest

from trisect.analysis import findings
from trisect.analysis.findings import Cause
from trisect.report.text.note_words import all_in_words, in_words
from trisect.results.notes import Note, note
from trisect.results.tables import TOTAL


def sweep(*points: tuple[float, float, float], sections: int = 1, **other: Any) -> pd.DataFrame:
    """A table at 1, 2, 4, ... GPUs from (compute, transfer, wait) per point, the same in every section."""
    rows = [
        fabricated.row("made_up", f"part{section}", 2**place, *point, **other)
        for place, point in enumerate(points)
        for section in range(sections)
    ]
    return fabricated.finished(rows)


def total(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["section"] == TOTAL]


@dataclass
class Words:
    """A finding as it reads."""

    verdict: str
    reason: str
    remedy: str
    next_loss: str
    caveats: list[str]


def worded(found: findings.Finding) -> Words:
    parts = (found.verdict, found.reason, found.remedy, found.next_loss)
    return Words(*(in_words(part) if part else "" for part in parts), all_in_words(found.caveats))


def only(table: pd.DataFrame, notes: list[Note] | None = None, gpus: int = 2) -> Words:
    (found,) = findings.find(table, {("made_up", gpus): notes or []})
    return worded(found)


@pytest.mark.parametrize(("share", "count"), [(0.8, 2), (0.7999, 1)])
def test_a_count_pays_from_80_percent_parallel_efficiency(share: float, count: int) -> None:
    table = total(sweep((1, 0, 0), (share, 1 - share, 0)))
    assert findings.largest_count(table, findings.PAYS) == count


@pytest.mark.parametrize(("share", "count"), [(0.5, 2), (0.4999, 1)])
def test_half_is_lost_below_50_percent(share: float, count: int) -> None:
    table = total(sweep((1, 0, 0), (share, 1 - share, 0)))
    assert findings.largest_count(table, findings.HALF) == count


def test_the_largest_count_counts_even_past_a_dip() -> None:
    table = total(sweep((1, 0, 0), (0.5, 0.2, 0), (0.25, 0.01, 0)))
    assert findings.largest_count(table, findings.PAYS) == 4


def test_no_count_may_pay() -> None:
    table = sweep((0.6, 0.4, 0), (0.3, 0.3, 0))
    assert findings.largest_count(total(table), findings.PAYS) is None
    assert only(table).verdict.startswith("No count reaches a parallel efficiency of 80 %: at 2 it is 50 %")


@pytest.mark.parametrize("make", [fabricated.cluster_scaling, fabricated.laptop_scaling])
def test_excess_adds_up_to_cost_less_one(make: Any) -> None:
    for _, rows in make().groupby("experiment"):
        for row in total(rows).to_dict("records"):
            assert findings.excess(rows, row["gpus"]).sum().sum() == pytest.approx(row["cost"] - 1, abs=1e-12)


def test_excess_by_hand() -> None:
    """1 GPU: 2 s of compute in all. 4 GPUs, per section: 0.3 s compute, 0.1 s transfer, 0.05 s wait."""
    grown = findings.excess(sweep((1, 0, 0), (0.5, 0, 0), (0.3, 0.1, 0.05), sections=2), 4)
    assert list(grown.loc["part0"]) == pytest.approx([(4 * 0.3 - 1) / 2, 4 * 0.1 / 2, 4 * 0.05 / 2])


@pytest.mark.parametrize(("transfer", "named"), [(0.025, True), (0.0249, False)])
def test_a_part_is_named_from_5_percent_of_the_baseline_cost(transfer: float, named: bool) -> None:
    table = sweep((1, 0, 0), (0.5, transfer, 0))
    cause = findings.find_cause(table, 2)
    assert (cause is not None) == named
    assert ("Nothing of note" in only(table).reason) != named


@pytest.mark.parametrize(
    ("grown", "named"),
    [((2, 1), ("a",)), ((1.99, 1), ("a", "b")), ((1.0, 1.0, 0.5), ("a", "b", "c")), ((1.0, 1.0, 0.49), ("a", "b"))],
)
def test_one_section_is_named_alone_from_two_thirds(grown: tuple[float, ...], named: tuple[str, ...]) -> None:
    assert findings.main_sections(pd.Series(grown, index=list("abc")[: len(grown)])) == named


@pytest.mark.parametrize(
    ("imbalance", "jitter", "late", "named"),
    [(0.5, 0.3, 0.2, "imbalance"), (0.49, 0.31, 0.2, ""), (0.2, 0.6, 0.2, "jitter"), (0.1, 0.1, 0.8, "late start")],
)
def test_a_wait_cause_is_named_from_half(imbalance: float, jitter: float, late: float, named: str) -> None:
    row = pd.Series({"wait_s": 1.0, "wait_imbalance_s": imbalance, "wait_jitter_s": jitter, "wait_late_start_s": late})
    assert findings.main_wait_cause(row) == named


def test_an_unknown_wait_cause_is_not_named() -> None:
    unknown = dict.fromkeys(["wait_imbalance_s", "wait_jitter_s", "wait_late_start_s"], math.nan)
    table = sweep((1, 0, 0), (0.5, 0, 0.2), **unknown)
    cause = findings.find_cause(table, 2)
    assert cause is not None
    assert (cause.part, cause.wait_cause, findings.choose_remedy(cause, table)) == ("wait", "", "wait")


@pytest.mark.parametrize(("bound", "remedy"), [(0.95, "rebalance"), (0.9499, "split")])
def test_imbalance_is_split_or_rebalanced_by_what_whole_pieces_allow(bound: float, remedy: str) -> None:
    table = sweep((1, 0, 0), (0.5, 0, 0.3), load_balance_bound=bound)
    cause = findings.find_cause(table, 2)
    assert cause is not None
    assert cause.wait_cause == "imbalance"
    assert findings.choose_remedy(cause, table) == remedy
    assert remedy != "split" or "95 % at 2 GPUs" in only(table).remedy


@pytest.mark.parametrize(("transfer", "remedy"), [(0.4999, "overlap"), (0.5, "links")])
def test_transfer_can_be_overlapped_while_it_is_shorter_than_compute(transfer: float, remedy: str) -> None:
    table = sweep((1, 0, 0), (0.5, transfer, 0))
    assert findings.choose_remedy(Cause(2, "transfer", ("part0",), 1.0, ""), table) == remedy


@pytest.mark.parametrize(("gap", "remedy"), [(0.11, "launch"), (0.1099, "repeated")])
def test_growing_compute_is_idle_gaps_or_repeated_work(gap: float, remedy: str) -> None:
    """Compute grows by 2 * 0.6 - 1 = 0.2 s; idle gaps by 2 * gap - 0.12, which is half of it at 0.11."""
    rows = [
        fabricated.row("made_up", "part0", 1, 1.0, 0, 0, idle_s=0.12),
        fabricated.row("made_up", "part0", 2, 0.6, 0, 0, idle_s=gap),
    ]
    table = fabricated.finished(rows)
    cause = findings.find_cause(table, 2)
    assert cause is not None
    assert (cause.part, findings.choose_remedy(cause, table)) == ("compute", remedy)


def test_busy_gpus_that_do_not_pay_are_said() -> None:
    """Nothing but compute, so parallel efficiency stays at 100 %, yet 4 GPUs are no faster than one."""
    found = only(sweep((1, 0, 0), (1, 0, 0), (1, 0, 0)))
    assert found.verdict == (
        "GPUs stay busy up to 4 (parallel efficiency 100 %), but the same work costs 4.00 times the GPU-seconds there: "
        "speedup 1.00 of 4."
    )
    assert found.reason.startswith("The largest part of what is lost so far is compute")


def test_adding_may_not_pay_at_all() -> None:
    found = only(sweep((1, 0, 0), (0.5, 0.4, 0)))
    assert found.verdict == (
        "Adding GPUs does not pay past the smallest count, 1: parallel efficiency is 56 % at 2, "
        "and the speedup 1.11 of 2."
    )


def doubts(**other: Any) -> str:
    table = sweep((1, 0, 0), (0.5, 0.05, 0)).assign(**other)
    return " ".join(all_in_words(findings.find_caveats(table, [2], Cause(2, "transfer", ("part0",), 1.0, ""))))


@pytest.mark.parametrize(
    ("lo", "hi", "crossed"), [(0.79, 0.81, True), (0.8, 0.81, False), (0.79, 0.8, True), (0.79, 0.7999, False)]
)
def test_an_interval_that_crosses_a_threshold_is_said(lo: float, hi: float, crossed: bool) -> None:
    said = doubts(parallel_efficiency_lo=lo, parallel_efficiency_hi=hi)
    assert ("It is open whether 2 GPUs reach 80 % parallel efficiency" in said) == crossed


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"iterations": 4}, "Only 4 iterations: the intervals are too narrow; measure 5 or more."),
        ({"repairs": 1}, "Traces were repaired at 2 GPUs"),
        ({"profiling_overhead": 1.21}, "Profiling makes iterations more than 1.2 times as long at 2 GPUs"),
        (
            {"profiling_overhead": 0.83},
            "Iterations without the profiler took more than 1.2 times as long as with it at 2",
        ),
        ({"transfer_is_bound": True}, "Transfer is a lower bound at 2 GPUs"),
    ],
)
def test_what_the_data_do_not_carry_is_said(change: dict[str, Any], words: str) -> None:
    assert words in doubts(**change)
    assert doubts(iterations=5, repairs=0, profiling_overhead=1.2, transfer_is_bound=False) == ""
    assert doubts(profiling_overhead=0.84) == ""


@pytest.mark.parametrize(("lo", "hi", "crossed"), [(1.25, 1.26, True), (1.2501, 1.3, False), (1.1, 1.25, False)])
def test_an_interval_that_crosses_the_largest_cost_is_said(lo: float, hi: float, crossed: bool) -> None:
    said = doubts(parallel_efficiency=0.9, cost_lo=lo, cost_hi=hi)
    assert ("It is open whether 2 GPUs cost more than 1.25 times the smallest count" in said) == crossed


@pytest.mark.parametrize(("least", "open_"), [(0.1799, True), (0.18, False)])
def test_a_cause_is_open_where_intervals_overlap(least: float, open_: bool) -> None:
    """At 2 GPUs transfer is 0.2 s, wait 0.15 s and at most 0.18 s."""
    table = sweep((1, 0, 0), (0.5, 0.2, 0.15)).assign(transfer_s_lo=least, transfer_s_hi=0.22, wait_s_hi=0.18)
    cause = findings.find_cause(table, 2)
    assert cause is not None
    assert cause.part == "transfer"
    assert findings.rivals(table, cause) == (["wait"] if open_ else [])
    said = " ".join(only(table).caveats)
    assert ("It is open whether transfer or wait is the larger loss: intervals overlap." in said) == open_


def test_oversubscribed_counts_are_no_scaling_loss() -> None:
    """At 4 ranks everything takes four times as long: left out, and said."""
    table = sweep((1, 0, 0), (0.5, 0.02, 0), (2, 1, 1))
    fair = only(table[table["gpus"] < 4])
    found = only(table.assign(oversubscribed=table["gpus"] == 4))
    assert (found.verdict, found.reason, found.remedy) == (fair.verdict, fair.reason, fair.remedy)
    assert found.caveats[0] == "4 GPUs shared cores; these points are ignored here."


@pytest.mark.parametrize("over", [1, 2])
def test_nothing_is_concluded_from_one_count_or_without_the_baseline(over: int) -> None:
    table = sweep((1, 0, 0), (0.5, 0.5, 0))
    found = only(table.assign(oversubscribed=table["gpus"] == over))
    assert found.verdict == "Nothing to compare: fewer than two counts of GPUs had cores or devices of their own."
    assert (found.reason, found.remedy) == ("", "")


def test_the_published_study_is_concluded_again() -> None:
    """Transfer, not wait, is most of what 2D loses; 3D pays to 64; the whole operators limit the 3D gradient."""
    by_name = {found.experiment: worded(found) for found in findings.find(fabricated.cluster_scaling(), {})}
    assert by_name["inference_2d"].verdict.startswith("GPUs pay up to 8 ")
    assert by_name["inference_2d"].reason.startswith("Transfer takes over")
    assert by_name["training_2d"].reason.startswith("Transfer takes over")
    for name in ("inference_3d", "training_3d"):
        assert by_name[name].verdict.startswith("GPUs pay at all counts up to 64")
    assert all(found.caveats == [] for found in by_name.values())
    assert by_name["inference_2d"].verdict.endswith("and the speedup is 29.3 of 64.")


def test_whole_operators_are_found_behind_the_gradient_alone() -> None:
    scaling = fabricated.cluster_scaling()
    gradient = scaling[(scaling["experiment"] == "inference_2d") & (scaling["section"] == "gradient")]
    alone = fabricated.finished(gradient.assign(transfer_s=0.0).to_dict("records"))
    cause = findings.find_cause(alone, 16)
    assert cause is not None
    assert (cause.part, cause.sections, cause.wait_cause) == ("wait", ("gradient",), "imbalance")
    assert findings.choose_remedy(cause, alone) == "split"
    assert "a load balance of 50 % at 16 GPUs" in only(alone).remedy


@pytest.mark.parametrize(("baseline", "said"), [(1.0, False), (1.2, True)])
def test_a_cost_below_1_is_no_loss_and_asks_to_look_at_the_baseline(baseline: float, said: bool) -> None:
    """At 2 GPUs 0.5 s of compute and 0.05 s of wait; the smallest count took 1 s, or 1.2 s because it was disturbed."""
    found = only(sweep((baseline, 0, 0), (0.5, 0, 0.05)))
    assert found.reason.startswith("Nothing is lost: at 2 GPUs the same work costs 0.917 times") == said
    assert ("Look at the run at 1" in found.reason) == said
    assert ("of what is lost" in found.reason) != said


@pytest.mark.parametrize(("balance", "said"), [(0.49, True), (0.51, False)])
def test_a_section_that_collapses_without_mattering_yet_has_a_line(balance: float, said: bool) -> None:
    """A section of a hundredth of the time, whose ranks have a load balance of `balance` at 2 GPUs."""
    small = 0.01 * balance
    rows = [
        *(fabricated.row("made_up", "large", n, 1 / n, 0, 0) for n in (1, 2)),
        fabricated.row("made_up", "small", 1, small, 0, 0),
        fabricated.row("made_up", "small", 2, small, 0, 0.01 - small),
    ]
    found = only(fabricated.finished(rows)).next_loss
    assert (found == "") != said
    assert not said or found.startswith("The next loss comes from small: its load balance is 49 % at 2 GPUs")


def test_caveats_of_a_run_reach_the_finding_that_rests_on_it() -> None:
    """What a run's findings.md doubts; late start only where the finding blames it."""
    late = note("late_start_uncertain", section="part0", by_clock_s=0.00032, by_duration_s=0.00273)
    notes = [note("unattributed", share=0.05), late]
    causes = {"wait_imbalance_s": 0.0, "wait_jitter_s": 0.02, "wait_late_start_s": 0.2}
    blamed = only(sweep((1, 0, 0), (0.5, 0, 0.22), **causes), notes)
    assert "At 2 GPUs: 5.0 % of the device time belongs to no launch" in " ".join(blamed.caveats)
    assert "(320 \u00b5s by aligned clocks, 2.73 ms by durations): do not trust its late start." in " ".join(
        blamed.caveats
    )
    other = only(sweep((1, 0, 0), (0.5, 0.2, 0)), notes)
    assert len(other.caveats) == 1
    assert only(sweep((1, 0, 0), (0.5, 0.2, 0)), notes, gpus=1).caveats != blamed.caveats
