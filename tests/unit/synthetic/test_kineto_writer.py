"""The generator: what it writes is what was stated, and looks like torch's own."""

import gzip
import json
from dataclasses import replace

import pytest
from expected import expected

from trisect.synthetic.ground_truth import PAUSE_NS, SyntheticExchange, SyntheticJob, SyntheticSection, play
from trisect.synthetic.kineto_writer import BASE_NS, ORIGIN_NS, write_job

MS = 1_000_000
# Rank 0 computes 3 ms, rank 1 5 ms; the collective moves data for 1 ms. One iteration.
ONE = SyntheticJob(2, ((SyntheticSection("gradient", (SyntheticExchange((3 * MS, 5 * MS), MS, payload_bytes=400),)),),))


def read(path):
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return json.loads(text)


def test_expected_by_hand():
    row = expected(ONE).set_index("section").loc["gradient"]
    assert row["span_s"] == pytest.approx(6e-3, rel=1e-12)
    assert row["compute_s"] == pytest.approx(4e-3, rel=1e-12)
    assert row["transfer_s"] == pytest.approx(1e-3, rel=1e-12)
    assert row["wait_s"] == row["wait_imbalance_s"] == pytest.approx(1e-3, rel=1e-12)
    assert row["compute_max_s"] == pytest.approx(5e-3, rel=1e-12)
    assert row["wait_jitter_s"] == row["wait_late_start_s"] == row["hidden_s"] == row["idle_s"] == 0


def test_rooted_collective_lets_an_early_root_go():
    broadcast = SyntheticExchange((1 * MS, 5 * MS), MS, op="broadcast", root=0)
    done = play(replace(ONE, iterations=((SyntheticSection("s", (broadcast,)),),)))[0].sections[0].exchanges[0]
    assert (done.exposed_ns == [MS, MS]).all()  # rank 0 leaves after 1 ms of sending, rank 1 finds the data there
    late_root = replace(broadcast, root=1)
    done = play(replace(ONE, iterations=((SyntheticSection("s", (late_root,)),),)))[0].sections[0].exchanges[0]
    assert (done.exposed_ns == [5 * MS, MS]).all()


def test_gloo_trace_shows_the_times_on_the_ranks_own_clock(tmp_path):
    paths = write_job(replace(ONE, offset_ns=(0, 10**9)), tmp_path, compress=False)
    trace = read(paths[1])
    assert trace["baseTimeNanoseconds"] == BASE_NS
    assert trace["distributedInfo"]["rank"] == 1
    events = {event["name"]: event for event in trace["traceEvents"]}
    start_us = (ORIGIN_NS + PAUSE_NS + 10**9) / 1000
    assert events["gradient"]["ts"] == start_us
    assert events["gradient"]["dur"] == 6000.0
    assert events["aten::conv2d"]["dur"] == 5000.0
    assert (events["gloo:all_reduce"]["ts"], events["gloo:all_reduce"]["dur"]) == (start_us + 5000, 1000.0)
    assert events["gloo:all_reduce"]["args"]["Input Dims"] == [[100]]
    assert events["ProfilerStep#3"]["dur"] >= 6000.0


def test_nccl_trace_links_each_kernel_to_an_earlier_launch_inside_its_section(tmp_path):
    trace = read(write_job(replace(ONE, flavour="nccl", barrier_ns=MS), tmp_path)[0])
    events = trace["traceEvents"]
    calls = {e["args"]["correlation"]: e for e in events if e.get("cat") == "cuda_runtime"}
    kernels = [e for e in events if e.get("cat") == "kernel"]
    section = next(e for e in events if e["name"] == "gradient")
    assert [k["args"]["stream"] for k in kernels] == [7, 40, 40]  # compute, all_reduce, barrier
    assert kernels[1]["args"]["Collective name"] == "allreduce"
    assert (kernels[1]["args"]["In msg nelems"], kernels[1]["args"]["Seq"]) == (100, 1)
    for kernel, inside in zip(kernels, (True, True, False), strict=True):
        call = calls[kernel["args"]["correlation"]]
        assert call["ts"] + call["dur"] <= kernel["ts"]
        assert (section["ts"] <= call["ts"] < section["ts"] + section["dur"]) == inside


def test_drift_stretches_a_clock(tmp_path):
    still, drifting = write_job(replace(ONE, drift_ppm=(0, 1000)), tmp_path)
    spans = [next(e["dur"] for e in read(p)["traceEvents"] if e["name"] == "gradient") for p in (still, drifting)]
    assert spans == pytest.approx([6000.0, 6006.0], abs=2e-3)


def test_same_job_same_bytes(tmp_path):
    first, again = write_job(ONE, tmp_path / "a"), write_job(ONE, tmp_path / "b")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in again]
    assert not list(tmp_path.rglob("*.partial"))


@pytest.mark.parametrize(
    ("exchange", "message"),
    [
        (SyntheticExchange(MS, 0), "at least 1 ns"),
        (SyntheticExchange(MS, 10, hidden_ns=11), "at least 1 ns"),
        (SyntheticExchange((0, MS), MS, idle_ns=5), "shows in no CUDA trace"),
        (SyntheticExchange(MS, MS, ranks=(0,)), "rank 1 runs nothing"),
    ],
)
def test_refuses_what_a_trace_cannot_show(exchange, message):
    with pytest.raises(ValueError, match=message):
        play(SyntheticJob(2, ((SyntheticSection("s", (exchange,)),),), flavour="nccl"))
