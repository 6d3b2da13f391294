"""A probe of one rank in this process: what bounds it, what it counts, and that a wrong result ends it."""

from contextlib import contextmanager

import pytest
import torch
import torch.distributed as dist

from trisect.config.plan import ProbeRun
from trisect.errors import TrisectError
from trisect.results.notes import note
from trisect.results.tables import ALL_REDUCE, as_table
from trisect.worker import all_reduce_timing, memory
from trisect.worker.all_reduce_timing import isolated, streamed
from trisect.worker.exact_sums import Sum
from trisect.worker.probe_worker import FEWEST_REPETITIONS, WARMUP, Probe
from trisect.worker.provenance import rank_place

CPU = torch.device("cpu")


class Context:
    """As much of deepinv's context as a probe uses."""

    rank = 0
    device = CPU


@pytest.fixture(autouse=True)
def _alone():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def probe(**changes):
    asked = {
        **{"gpus": 1, "device": "cpu", "backend": "gloo", "environment": {}, "collective_timeout_s": 10},
        **{"algorithm": "chosen", "smallest_bytes": 1024, "largest_bytes": 8192, "repetitions": 10, "seconds": 20.0},
    }
    told = []
    return Probe(ProbeRun(**asked | changes), Context(), [rank_place(0, CPU)], told.append), told


def test_every_size_in_both_cadences():
    one, told = probe()
    one.measure()
    table = as_table(one.rows, ALL_REDUCE)
    assert table["payload_bytes"].tolist() == [1024, 1024, 2048, 2048, 4096, 4096, 8192, 8192]
    assert table["cadence"].tolist() == ["separated", "back_to_back"] * 4
    assert table["repetitions"].between(FEWEST_REPETITIONS, 10).all()
    assert (table["wrong"] == 0).all()
    assert (table[["min_s", "warmup_s"]] > 0).all(axis=None)
    assert (table["min_s"] <= table["median_s"]).all()
    assert (table["median_s"] <= table["p95_s"]).all()
    assert told[-1] == "8192 bytes, size 4 of 4"
    assert (one.measured, one.left_out) == ([1024, 2048, 4096, 8192], None)
    uncounted = 4 * (WARMUP + 1)  # before the isolated ones, and at the head of the one chain of each size
    assert one.checked == table["repetitions"].sum() + uncounted


def test_memory_bounds_the_sizes(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda device: 4 * 5000)  # half of it, for a buffer and its pattern
    one, _ = probe()
    one.measure()
    assert one.measured == [1024, 2048, 4096]
    assert one.left_out == note("probe_memory", first_bytes=8192, memory_bytes=5000)


def test_no_memory_at_all_is_one_line(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda device: 4000)
    one, _ = probe()
    with pytest.raises(TrisectError, match="no size was measured, memory allows for 1000 bytes; lower"):
        one.measure()


def test_time_bounds_the_sizes(monkeypatch):
    """An all_reduce of 10 ms: after the first size there is no time for the second."""
    as_it_was = dist.all_reduce

    def slow(buffer):
        as_it_was(buffer)
        all_reduce_timing.time.sleep(0.01)

    monkeypatch.setattr(dist, "all_reduce", slow)
    one, _ = probe(seconds=0.2)
    one.measure()
    assert one.measured == [1024]
    assert one.left_out == note("probe_time", first_bytes=2048, limit_s=0.2)
    assert {row["repetitions"] for row in one.rows} == {FEWEST_REPETITIONS}
    assert all(0.01 <= row["min_s"] < 0.1 for row in one.rows)


def test_more_ranks_than_can_be_checked_are_refused(monkeypatch):
    monkeypatch.setattr("trisect.worker.probe_worker.longest_chain", lambda gpus: 0)
    with pytest.raises(TrisectError, match="float32 is not exact enough to check; use fewer"):
        probe()[0].measure()


def test_where_no_two_in_a_row_are_exact_they_are_left_out(monkeypatch):
    monkeypatch.setattr("trisect.worker.probe_worker.longest_chain", lambda gpus: 1)
    one, _ = probe()
    one.measure()
    assert {row["cadence"] for row in one.rows} == {"separated"}


@contextmanager
def corrupted(monkeypatch, at):
    """The all_reduce number `at` gives one wrong value."""
    as_it_was, calls = dist.all_reduce, []

    def corrupt(buffer):
        as_it_was(buffer)
        calls.append(None)
        if len(calls) == at:
            buffer[5] += 1

    with monkeypatch.context() as patch:
        patch.setattr(dist, "all_reduce", corrupt)
        yield


@pytest.mark.parametrize("at", [1, 3, 5])
def test_a_wrong_value_is_seen_in_either_cadence(monkeypatch, at):
    with corrupted(monkeypatch, at):
        assert isolated(Sum(1024, 0, 1, CPU), 5).wrong_values == [int(k + 1 == at) for k in range(5)]
    with corrupted(monkeypatch, at):
        assert streamed(Sum(1024, 0, 1, CPU), 2, 3).wrong_values == [int(at <= 3), int(at > 3)]


def test_a_wrong_value_ends_the_probe(monkeypatch):
    one, _ = probe(smallest_bytes=2048)
    with (
        corrupted(monkeypatch, WARMUP + 2),
        pytest.raises(TrisectError, match=r"all_reduce of 2048 bytes \(isolated\): 1 of \d+ results on rank 0 are"),
    ):
        one.measure()
    assert one.rows == []


def test_the_head_of_a_chain_is_not_counted():
    found = streamed(Sum(1024, 0, 1, CPU), 3, 4)
    assert (len(found.times_s), len(found.uncounted_s), len(found.wrong_values)) == (9, 3, 3)
