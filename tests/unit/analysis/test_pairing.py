"""Pairing: what belongs together is found, what does not is refused by name."""

from dataclasses import replace

import pandas as pd
import pytest
from known import MS, job_of, trace_of

from trisect.analysis import pairing
from trisect.errors import TrisectError
from trisect.results.notes import note
from trisect.results.tables import OUTSIDE
from trisect.synthetic.ground_truth import SyntheticExchange, SyntheticJob, SyntheticSection

TWO = (SyntheticExchange((1 * MS, 2 * MS, 1 * MS), MS, payload_bytes=8), SyntheticExchange(MS, MS, payload_bytes=400))
JOB = SyntheticJob(3, ((SyntheticSection("s", TWO),),) * 3)


def collectives(job=JOB):
    return trace_of(job).collectives


@pytest.mark.parametrize("flavour", ["gloo", "nccl"])
def test_every_rank_has_its_row_in_every_pair(flavour):
    paired, _ = pairing.pair(collectives(replace(JOB, flavour=flavour)), 3)
    members = paired.groupby("pair")["rank"].agg(list)
    assert len(members) == 6
    assert all(ranks == [0, 1, 2] for ranks in members)
    assert (paired.groupby("pair")["bytes"].nunique() == 1).all()
    assert paired["slot"].nunique() == 2


def test_without_sequence_numbers_order_among_equal_ones_decides():
    rows = collectives()
    swapped = (rows["rank"] == 1) & (rows["iteration"] == 3)  # two worker threads started them in the other order
    rows.loc[swapped, "start_ns"] = rows.loc[swapped, "start_ns"].to_numpy()[::-1]
    paired, _ = pairing.pair(rows, 3)
    assert (paired.groupby("pair")["bytes"].nunique() == 1).all()


def test_other_payload_is_refused_naming_the_first_that_differs():
    rows = collectives()
    rows.loc[(rows["rank"] == 1) & (rows["bytes"] == 400) & (rows["iteration"] == 4), "bytes"] = 404
    with pytest.raises(TrisectError) as caught:
        pairing.pair(rows, 3)
    assert str(caught.value) == (
        "iteration 4, section 's', collective 2 of the iteration: all_reduce of 400 bytes (group '') ran on ranks 0, 2"
        " but not on rank 1, where rank 1 ran all_reduce of 404 bytes (group ''); collectives pair only if every rank"
        " of a group recorded the same ones"
    )


@pytest.mark.parametrize("column", ["op", "seq"])
def test_other_operation_or_sequence_number_is_refused(column):
    rows = collectives(replace(JOB, flavour="nccl"))
    rows.loc[5, column] = {"op": "all_gather", "seq": 77}[column]
    with pytest.raises(TrisectError, match="iteration 5, section 's', collective 2"):
        pairing.pair(rows, 3)


def test_a_lost_collective_is_refused():
    rows = collectives(replace(JOB, flavour="nccl")).drop(index=8)  # rank 1, iteration 4, the first
    with pytest.raises(TrisectError, match=r"sequence number 3\) ran on ranks 0, 2 but not on rank 1"):
        pairing.pair(rows, 3)


def test_missing_ranks_are_refused():
    rows = collectives().assign(group_size=128)
    with pytest.raises(TrisectError, match=r"collectives of 128 ranks, but traces of 3 \(ranks 0 to 2\)"):
        pairing.pair(rows, 3)


def test_two_groups_under_one_name_are_refused():
    rows = collectives(replace(JOB, flavour="nccl")).assign(group_size=2)
    with pytest.raises(TrisectError, match="ran on ranks 0 to 2, not on 2"):
        pairing.pair(rows, 3)


def test_uneven_all_to_all_pairs():
    rows = collectives(replace(JOB, flavour="nccl")).assign(op="all_to_all")
    rows["bytes"] += rows["rank"]
    paired, _ = pairing.pair(rows, 3)
    assert paired.groupby("pair")["rank"].agg(list).map(lambda ranks: ranks == [0, 1, 2]).all()


def test_what_pairs_in_part_outside_sections_is_left_out():
    rows = collectives(replace(JOB, barrier_ns=MS))
    outside = rows["section"] == OUTSIDE
    paired, barriers = pairing.pair(rows, 3)
    assert barriers["pair"].nunique() == 3
    assert not set(barriers["pair"]) & set(paired["pair"])
    lost = rows.drop(index=rows[outside & (rows["rank"] == 2) & (rows["iteration"] == 4)].index)
    assert set(pairing.pair(lost, 3)[1]["iteration"]) == {3, 5}


def test_iterations_that_some_ranks_lack_are_dropped_and_said():
    trace = trace_of(JOB)
    more = (trace.sections["rank"] == 1) | (trace.sections["iteration"] > 3)
    shared, notes = pairing.share_iterations(replace(trace, sections=trace.sections[more]))
    assert set(shared.sections["iteration"]) == set(shared.collectives["iteration"]) == {4, 5}
    assert notes == [note("iterations_dropped", rank=1, extra=[3], kept=[4, 5])]


def test_nothing_in_common_is_refused():
    trace = trace_of(job_of((3, 5), (3, 5)))
    sections = trace.sections
    apart = sections[(sections["rank"] == 0) == (sections["iteration"] == 3)]
    with pytest.raises(TrisectError, match="rank 0: 3; rank 1: 4"):
        pairing.share_iterations(replace(trace, sections=apart))


def test_a_section_on_some_ranks_only_is_refused():
    trace = trace_of(JOB)
    extra = trace.sections[trace.sections["rank"] < 2].assign(section="extra")
    with pytest.raises(TrisectError, match=r"iteration 3, section 'extra'.*on ranks 0, 1 but not on rank 2"):
        pairing.share_iterations(replace(trace, sections=pd.concat([trace.sections, extra])))


def test_a_section_twice_is_refused():
    trace = trace_of(JOB)
    with pytest.raises(TrisectError, match="ranks 0 to 2 has it twice"):
        pairing.share_iterations(replace(trace, sections=pd.concat([trace.sections] * 2)))
