"""Pieces of an iteration where and as long as they were played, on clocks that are set apart."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from known import MS, job_of, trace_of

from trisect.analysis.decomposition import decompose
from trisect.analysis.timeline import COMPUTE, PIECES, SPANS, TRANSFER, WAIT, timeline
from trisect.errors import TrisectError
from trisect.synthetic.ground_truth import SyntheticExchange, SyntheticJob, SyntheticSection


def shape(found, iteration, rank):
    """Kind, start and end in ms of one rank's pieces."""
    rows = found.pieces[(found.pieces["iteration"] == iteration) & (found.pieces["rank"] == rank)]
    return [(row.kind, round(1e3 * row.start_s, 4), round(1e3 * row.end_s, 4)) for row in rows.itertuples()]


def test_pieces_by_hand_on_clocks_an_hour_apart():
    # Rank 0 computes 3 ms and waits 2 for rank 1, which computes 5; the all_reduce moves data for 1 ms.
    found = timeline(trace_of(job_of((3, 5), (4, 4), offset_ns=(0, 3_600_000 * MS), barrier_ns=1000)))
    assert (found.slowest, found.median) == (3, 4)
    assert shape(found, 3, 0) == [(COMPUTE, 0, 3), (WAIT, 3, 5), (TRANSFER, 5, 6)]
    assert shape(found, 3, 1) == [(COMPUTE, 0, 5), (TRANSFER, 5, 6)]
    assert shape(found, 4, 0) == shape(found, 4, 1) == [(COMPUTE, 0, 4), (TRANSFER, 4, 5)]
    assert found.residual_s < 1e-6
    assert list(found.pieces.columns) == PIECES
    assert list(found.sections.columns) == SPANS


def test_the_slowest_and_the_middle_of_the_others():
    found = timeline(trace_of(job_of((1, 1), (5, 5), (2, 2), (9, 9), (3, 3))))
    assert (found.slowest, found.median) == (6, 5)  # 9 ms; of 1, 2, 3 and 5 ms the lower middle one
    assert set(found.pieces["iteration"]) == {5, 6}
    alone = timeline(trace_of(job_of((1, 2))))
    assert alone.slowest == alone.median == 3


def test_lengths_are_those_of_the_decomposition():
    exchanges = (
        SyntheticExchange((2 * MS, 5 * MS, 3 * MS), 4 * MS, hidden_ns=1 * MS),
        SyntheticExchange((4 * MS, 1 * MS, 2 * MS), 2 * MS, payload_bytes=8),
    )
    section = SyntheticSection("s", exchanges, late_ns=(0, MS, 0), tail_ns=(MS, 0, 2 * MS))
    trace = trace_of(SyntheticJob(3, ((section, SyntheticSection("t", ())),) * 3, offset_ns=(0, 7 * MS, -5 * MS)))
    found = timeline(trace)
    took = found.pieces.assign(took=found.pieces["end_s"] - found.pieces["start_s"])
    took = took.groupby(["iteration", "rank", "section", "kind"])["took"].sum().unstack(fill_value=0)
    ranks = decompose(trace).ranks.set_index(["iteration", "rank", "section"]).loc[took.index]
    for kind in (COMPUTE, WAIT, TRANSFER):
        np.testing.assert_allclose(took[kind], ranks[f"{kind}_s"], atol=1e-9)


def test_pieces_fill_their_sections_and_never_overlap():
    found = timeline(trace_of(job_of((3, 5, 1), (4, 4, 9), (2, 8, 8), transfer_ms=0.5)))
    for _, rows in found.pieces.groupby(["iteration", "rank"]):
        np.testing.assert_allclose(rows["start_s"][1:], rows["end_s"][:-1], atol=1e-9)
        assert (rows["end_s"] > rows["start_s"]).all()
    ends = found.pieces[found.pieces["kind"] == TRANSFER].groupby(["iteration", "pair"])["end_s"]
    assert (ends.max() - ends.min()).max() <= found.residual_s + 1e-9  # every rank's collective ends together


def test_one_rank_needs_no_clock_and_several_need_a_collective():
    alone = timeline(trace_of(SyntheticJob(1, ((SyntheticSection("s", (), tail_ns=3 * MS),),))))
    assert shape(alone, 3, 0) == [(COMPUTE, 0, 3)]
    assert np.isnan(alone.residual_s)
    trace = trace_of(job_of((3, 5)))
    rooted = replace(trace, collectives=trace.collectives.assign(op="broadcast"))
    with pytest.raises(TrisectError, match="no collective of all ranks"):
        timeline(rooted)


def test_a_collective_that_outlasts_its_section_ends_with_it():
    trace = trace_of(job_of((3, 5)))
    late = trace.collectives.assign(end_ns=trace.collectives["end_ns"] + MS)
    late["hidden_ns"] += MS  # what lies outside of the section counts as hidden
    found = timeline(replace(trace, collectives=late))
    ends = pd.concat(
        [found.pieces.groupby("rank")["end_s"].max(), found.sections.groupby("rank")["end_s"].max()], axis=1
    )
    np.testing.assert_allclose(ends.iloc[:, 0], ends.iloc[:, 1], atol=1e-9)
