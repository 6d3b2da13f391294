"""Ground truth, all the way: stated times -> trace files -> tables -> decomposition -> the stated times."""

import gzip
import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from expected import expected
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from known import trace_of

from trisect.analysis.decomposition import decompose
from trisect.errors import TrisectError
from trisect.results.tables import TIMES
from trisect.synthetic.ground_truth import SyntheticExchange, SyntheticJob, SyntheticSection
from trisect.synthetic.kineto_writer import write_job
from trisect.trace.read_job import read_job

SLOW = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
NAMES = ("gradient", "denoiser")
RANKS, MORE_RANKS = st.integers(1, 4), st.integers(2, 4)
VALUES = [*TIMES, "load_balance", "comm_efficiency", "parallel_efficiency"]


OPS = st.sampled_from(["all_reduce", "all_reduce", "all_gather", "reduce_scatter", "broadcast"])
PAYLOADS = st.sampled_from([960, 96_000])


@st.composite
def exchanges(draw, size, op, payload):
    """One collective with compute, idle and hidden parts that differ by rank."""
    transfer = draw(st.integers(1_000, 3_000_000))
    each = {
        "compute_ns": st.integers(1_000, 5_000_000),
        "idle_ns": st.sampled_from([0, 0, 40_000]),
        "hidden_ns": st.sampled_from([0, transfer // 2]),
    }
    per_rank = {name: tuple(draw(st.lists(one, min_size=size, max_size=size))) for name, one in each.items()}
    return SyntheticExchange(transfer_ns=transfer, payload_bytes=payload, op=op, root=size - 1, **per_rank)


@st.composite
def jobs(draw, ranks=RANKS):
    """A job with perfect clocks: the same collectives in each iteration, at other times, and a closing barrier."""
    size = draw(ranks)
    kinds = draw(st.lists(st.lists(st.tuples(OPS, PAYLOADS), min_size=1, max_size=2), min_size=1, max_size=2))
    late = st.lists(st.sampled_from([0, 0, 700_000]), min_size=size, max_size=size)
    iterations = []
    for _ in range(draw(st.integers(1, 4))):
        sections = []
        for name, of_section in zip(NAMES, kinds, strict=False):
            held = tuple(draw(exchanges(size, *kind)) for kind in of_section)
            sections.append(SyntheticSection(name, held, tuple(draw(late)), draw(st.sampled_from([0, 90_000]))))
        iterations.append(tuple(sections))
    return SyntheticJob(size, tuple(iterations), draw(st.sampled_from(["gloo", "nccl"])), barrier_ns=50_000)


def names_of(job):
    return [section.name for section in job.iterations[0]]


def decomposed(job, spoil=None):
    """Through files: written, `spoil`ed, read, decomposed."""
    with tempfile.TemporaryDirectory() as folder:
        for path in write_job(job, Path(folder)):
            if spoil:
                trace = json.loads(gzip.decompress(path.read_bytes()))
                path.write_bytes(gzip.compress(json.dumps(spoil(trace)).encode(), 1))
        return decompose(read_job(Path(folder), sections=names_of(job), workers=1))


def table(result):
    return result.table.set_index("section")[VALUES]


@SLOW
@given(jobs())
def test_exact_truth_comes_out_exactly(job):
    found, truth = table(decomposed(job)), expected(job).set_index("section")
    assert list(found.index) == list(truth.index)
    pd.testing.assert_frame_equal(found[list(TIMES)], truth, check_exact=False, rtol=1e-9, atol=1e-12)


@SLOW
@given(jobs(MORE_RANKS), st.data())
def test_truth_comes_out_on_clocks_that_are_off_and_drift(job, data):
    every = {"min_size": job.world_size, "max_size": job.world_size}
    offset = data.draw(st.lists(st.integers(-(10**9), 10**9), **every))
    drift = data.draw(st.lists(st.sampled_from([-50, 0, 50]), **every))
    result = decomposed(replace(job, offset_ns=tuple(offset), drift_ppm=tuple(drift)))
    truth = expected(job).set_index("section")
    # Clocks that run apart by 100 ppm measure the same time apart by that share of the span it lies in.
    allowed = 0.01 * truth.abs() + 200e-6 * truth[["span_s"]].to_numpy() + 2e-9
    found = table(result)[list(TIMES)]
    if found["wait_late_start_s"].isna().any():  # nothing to align by: not guessed
        assert np.isnan(result.clock_residual_s)
        found, allowed = found.drop(columns="wait_late_start_s"), allowed.drop(columns="wait_late_start_s")
    assert ((found - truth[found.columns]).abs() <= allowed).all(axis=None)


@SLOW
@given(jobs())
def test_identity_and_sum_of_causes(job):
    result = decompose(trace_of(job))
    times = result.table[list(TIMES)]
    parts = times[["compute_s", "transfer_s", "wait_s"]].sum(axis=1)
    assert list(parts) == pytest.approx(list(times["span_s"]), rel=1e-9)
    causes = times[[name for name in TIMES if name.startswith("wait_") and name != "wait_s"]].sum(axis=1)
    assert list(causes) == pytest.approx(list(times["wait_s"]), rel=1e-9, abs=1e-15)
    assert (times["wait_jitter_s"] >= 0).all()
    assert (result.collectives[["transfer_s", "mean_wait_s"]] >= 0).all(axis=None)
    ranks = result.ranks
    each = ranks["compute_s"] + ranks["transfer_s"] + ranks["wait_s"]
    assert list(each) == pytest.approx(list(ranks["span_s"]), rel=1e-9)


@SLOW
@given(jobs(MORE_RANKS), st.data())
def test_relabelling_ranks_changes_nothing(job, data):
    new = data.draw(st.permutations(range(job.world_size)))
    trace = trace_of(job)
    frames = {}
    for name in ("sections", "collectives", "readings"):
        frame = getattr(trace, name)
        frames[name] = frame.assign(rank=frame["rank"].map(dict(enumerate(new))))
    pd.testing.assert_frame_equal(table(decompose(replace(trace, **frames))), table(decompose(trace)), rtol=1e-12)


@SLOW
@given(jobs(MORE_RANKS), st.integers(-(10**9), 10**9))
def test_shifting_one_clock_changes_nothing(job, shift_ns):
    offset = (0,) * (job.world_size - 1) + (shift_ns,)
    moved = decompose(trace_of(replace(job, offset_ns=offset)))
    pd.testing.assert_frame_equal(table(moved), table(decompose(trace_of(job))), rtol=1e-12)


@settings(SLOW, max_examples=6)
@given(jobs(), st.randoms(use_true_random=False))
def test_order_of_events_in_the_file_changes_nothing(job, random):
    def shuffle(trace):
        random.shuffle(trace["traceEvents"])
        return trace

    pd.testing.assert_frame_equal(table(decomposed(job, shuffle)), table(decomposed(job)), rtol=1e-12)


def groups(flavour):
    """Two groups of two ranks side by side, then all four."""
    parts = (
        SyntheticExchange((1_000_000, 2_000_000, 1, 1), 300_000, payload_bytes=64, group="1", ranks=(0, 1)),
        SyntheticExchange((1, 1, 900_000, 900_000), 400_000, payload_bytes=128, group="2", ranks=(2, 3)),
        SyntheticExchange(500_000, 100_000, payload_bytes=4096),
    )
    return SyntheticJob(4, ((SyntheticSection("gradient", parts),),) * 2, flavour, barrier_ns=1_000)


def test_several_groups_come_out_exactly():
    found, truth = table(decomposed(groups("nccl"))), expected(groups("nccl")).set_index("section")
    pd.testing.assert_frame_equal(found[list(TIMES)], truth, check_exact=False, rtol=1e-9, atol=1e-12)


def test_gloo_names_no_group_so_subgroups_are_refused():
    with pytest.raises(TrisectError, match="but not on ranks"):
        decomposed(groups("gloo"))


@pytest.mark.parametrize("job", [groups("nccl"), replace(groups("nccl"), offset_ns=(0, 5, -7, 10**9), drift_ppm=40)])
def test_the_reader_returns_the_stated_tables(job, tmp_path):
    write_job(job, tmp_path)
    found, truth = read_job(tmp_path, sections=["gradient"], workers=1), trace_of(job)
    for name in ("sections", "collectives"):
        pd.testing.assert_frame_equal(getattr(found, name), getattr(truth, name))


def test_no_section_named_makes_each_iteration_one(tmp_path):
    job = groups("nccl")
    write_job(job, tmp_path)
    found = decompose(read_job(tmp_path, workers=1)).table.set_index("section").loc["iteration"]
    truth = expected(job).set_index("section").loc["gradient"]
    assert found["wait_imbalance_s"] == pytest.approx(truth["wait_imbalance_s"], rel=0.01)
    assert found["transfer_s"] == pytest.approx(truth["transfer_s"] + 1_000e-9, rel=1e-9)  # and the closing barrier


def test_an_iteration_that_a_rank_lacks_is_dropped_for_all(tmp_path):
    job = groups("nccl")
    paths = write_job(replace(job, iterations=job.iterations[:1]), tmp_path / "short")
    write_job(job, tmp_path / "long")
    paths[2].replace(tmp_path / "long" / paths[2].name)
    result = decompose(read_job(tmp_path / "long", sections=["gradient"], workers=1))
    assert (result.table["iterations"] == 1).all()
    assert sum(note.kind == "iterations_dropped" for note in result.caveats) == 3
