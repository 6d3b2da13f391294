"""Traces small enough to work out by hand, on the host and on a device."""

import json
import random

import pytest
from kineto import (
    AUTOGRAD,
    BASE_NS,
    NCCL_ARGS,
    annotation,
    cpu_events,
    cuda_events,
    document,
    event,
    gloo,
    kernel,
    kineto_layout,
    launched,
    nccl,
    noted,
    op,
)

from trisect.errors import TrisectError
from trisect.results.tables import COLLECTIVES, OUTSIDE, READINGS, SECTIONS
from trisect.trace.chunks import chunks
from trisect.trace.event_reader import Reader
from trisect.trace.windows import is_iteration

US = 1000
SECTIONS_OF = ["forward", "backward"]
LAYOUTS = [lambda text: text, kineto_layout]
WITH_DEVICE = {"deviceProperties": [{"id": 0}]}


def rows(table, *columns):
    """The columns of a table as tuples, times in microseconds since the base time."""
    shown = table[list(columns)].copy()
    for column in shown:
        if column in ("start_ns", "end_ns"):
            shown[column] = (shown[column] - BASE_NS) // US
        elif column.endswith("_ns"):
            shown[column] = shown[column] // US
    return list(shown.itertuples(index=False, name=None))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_host_job(read, layout):
    trace = read(layout(document(cpu_events())), sections=SECTIONS_OF)
    assert rows(trace.sections, "iteration", "section", "start_ns", "end_ns", "busy_ns") == [
        (0, "forward", 1010, 1300, 200),
        (0, "backward", 1310, 1710, 130),
        (1, "forward", 2010, 2300, 200),
        (1, "backward", 2310, 2710, 130),
    ]
    # The all_reduce runs for 200 us, of which 50 under aten::mm; c10d's own 5 us are no compute.
    columns = ("iteration", "section", "op", "bytes", "start_ns", "end_ns", "hidden_ns")
    assert rows(trace.collectives, *columns) == [
        (0, "backward", "all_reduce", 40, 1410, 1610, 50),
        (0, OUTSIDE, "barrier", 0, 1732, 1832, 0),
        (1, "backward", "all_reduce", 40, 2410, 2610, 50),
        (1, OUTSIDE, "barrier", 0, 2732, 2832, 0),
    ]
    assert trace.readings[["events", "repairs", "device_ns"]].to_numpy().tolist() == [[22, 0, 0]]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("header", [{}, WITH_DEVICE])
def test_device_job(read, layout, header):
    trace = read(layout(document(cuda_events(), **header)), sections=SECTIONS_OF)
    # Spans run from the first to the last device activity of what the section launched, autograd's thread included.
    assert rows(trace.sections, "iteration", "section", "start_ns", "end_ns", "busy_ns") == [
        (0, "forward", 1050, 1250, 200),
        (0, "backward", 1260, 1560, 160),
        (1, "forward", 2050, 2250, 200),
        (1, "backward", 2260, 2560, 160),
    ]
    # 260 us of all_reduce, 60 of them under the kernel of 2260 to 2360 and 60 under that of 2400 to 2460.
    columns = ("iteration", "section", "group", "seq", "op", "bytes", "group_size", "start_ns", "end_ns", "hidden_ns")
    assert rows(trace.collectives, *columns) == [
        (0, "backward", "0", 1, "all_reduce", 4000, 2, 1300, 1560, 120),
        (1, "backward", "0", 2, "all_reduce", 4000, 2, 2300, 2560, 120),
    ]
    assert trace.readings[["events", "repairs", "unattributed_ns"]].to_numpy().tolist() == [[26, 0, 0]]
    assert trace.readings["device_ns"].tolist() == [2 * (200 + 100 + 260 + 60) * US]


def test_tables_follow_their_schemas(read):
    trace = read(document(cuda_events()))
    for table, schema in ((trace.sections, SECTIONS), (trace.collectives, COLLECTIVES), (trace.readings, READINGS)):
        assert table.dtypes.astype(str).to_dict() == schema


def test_no_section_named_measures_whole_iterations(read):
    trace = read(document(cpu_events()))
    assert rows(trace.sections, "iteration", "section", "start_ns", "end_ns") == [
        (0, "iteration", 1000, 1900),
        (1, "iteration", 2000, 2900),
    ]
    assert set(trace.collectives["section"]) == {"iteration"}


@pytest.mark.parametrize("names", [["solve", "solve"], ["solve#7", "solve#8"]])
def test_iterations_by_a_named_annotation(read, names):
    trace = read(document([annotation(name, 10 + 100 * k, 50) for k, name in enumerate(names)]), iteration="solve")
    assert trace.sections["iteration"].tolist() == ([0, 1] if names[0] == "solve" else [7, 8])


def test_exposed_parts_never_exceed_the_span(read):
    overlapping = [
        *cuda_events(),
        *nccl(60, 1145, 1310, 300, **NCCL_ARGS, Seq=9, name="ncclDevKernel_AllGather_RING_LL(x)"),
    ]
    overlapping[-1]["tid"] = 21  # on a stream of its own
    trace = read(document(overlapping), sections=SECTIONS_OF)
    exposed = trace.collectives.assign(d=lambda c: c["end_ns"] - c["start_ns"] - c["hidden_ns"])
    section = trace.sections.set_index(["iteration", "section"]).loc[(0, "backward")]
    # Of the 350 us of span, 160 are compute, and 350 - 160 = 190 are under one collective or the other.
    assert section["end_ns"] - section["start_ns"] == 350 * US
    first = exposed[(exposed["iteration"] == 0) & (exposed["section"] == "backward")]
    assert first["d"].tolist() == [140 * US, 50 * US]


def test_gloo_collective_belongs_to_the_section_that_called_it(read):
    events = [
        annotation("ProfilerStep#0", 0, 1000),
        annotation("forward", 10, 100),
        op("c10d::allreduce_", 50, 5),
        op("aten::mm", 60, 40),
        annotation("backward", 110, 100),
        gloo("all_reduce", 130, 40),  # a busy worker took it up late
    ]
    trace = read(document(events), sections=SECTIONS_OF)
    assert rows(trace.collectives, "section", "start_ns", "hidden_ns") == [("forward", 130, 40)]


def test_operator_that_communicates_is_a_wrapper(read):
    events = [
        annotation("ProfilerStep#0", 0, 1000),
        op("autograd::engine::evaluate_function: AllReduceBackward", 100, 500, AUTOGRAD),
        op("aten::mul", 110, 20, AUTOGRAD),
        op("c10d::allreduce_", 150, 10, AUTOGRAD),
        gloo("all_reduce", 155, 400),
    ]
    trace = read(document(events))
    assert rows(trace.sections, "busy_ns") == [(20,)]
    assert rows(trace.collectives, "hidden_ns") == [(0,)]


def test_worker_threads_do_not_compute(read):
    events = [annotation("ProfilerStep#0", 0, 1000), gloo("all_gather", 10, 100), op("aten::copy_", 50, 40, 3)]
    assert rows(read(document(events)).collectives, "hidden_ns") == [(0,)]


def test_kernel_without_metadata_takes_the_enqueue_around_its_launch(read):
    shapes = {"Input Dims": [[50]], "Input type": ["float"]}
    events = [
        annotation("ProfilerStep#0", 0, 1000),
        annotation("nccl:all_to_all", 100, 20, **shapes),
        *nccl(1, 110, 200, 50, name="ncclDevKernel_Generic(x)"),
        *nccl(2, 130, 300, 50, name="ncclDevKernel_Generic(x)"),
    ]
    trace = read(document(events, world_size=2))
    assert rows(trace.collectives, "op", "bytes", "group_size") == [("all_to_all", 200, 2), ("unknown", -1, 2)]


def test_device_work_without_a_launch_is_counted(read):
    events = [*cuda_events(), kernel(9999, 1600, 20)]
    reading = read(document(events), sections=SECTIONS_OF).readings.iloc[0]
    assert (reading["device_ns"], reading["unattributed_ns"]) == ((1240 + 20) * US, 20 * US)


def test_copies_and_graph_launches_are_attributed(read):
    events = [
        annotation("ProfilerStep#0", 0, 1000),
        event("cuda_runtime", "cudaGraphLaunch", 1, 10, 5, correlation=1),
        kernel(1, 100, 50),
        kernel(1, 160, 40),
        event("cuda_runtime", "cudaMemcpyAsync", 1, 20, 5, correlation=2),
        kernel(2, 210, 10, "Memcpy HtoD", cat="gpu_memcpy"),
    ]
    trace = read(document(events))
    assert rows(trace.sections, "start_ns", "end_ns", "busy_ns") == [(100, 220, 100)]
    assert trace.readings["unattributed_ns"].tolist() == [0]


def test_iteration_whose_kernels_were_lost_is_left_out(read):
    lost = [one for one in cuda_events() if not (one["cat"] == "kernel" and one["args"]["correlation"] in (1, 2))]
    trace = read(document(lost), sections=SECTIONS_OF)
    assert trace.sections["iteration"].unique().tolist() == [1]
    assert trace.collectives["iteration"].unique().tolist() == [1]
    assert noted(trace, "iterations_skipped", "skipped") == [[{"iteration": 0, "lost": 2, "launched": 4}]]


def test_only_enqueues_are_no_communication(read):
    events = [*launched(1, 10, 20, 30), annotation("ProfilerStep#0", 0, 1000), annotation("nccl:all_reduce", 100, 20)]
    for header in ({}, WITH_DEVICE):
        with pytest.raises(TrisectError, match="no device-side communication recorded"):
            read(document(events, world_size=2, **header))
    with pytest.raises(TrisectError, match="no device-side communication recorded"):
        read(document([*events, gloo("barrier", 200, 10)], world_size=2))  # some of it went through the host
    read(document(events, world_size=1))  # alone there is nobody to communicate with


def test_enqueues_without_any_device_activity(read):
    events = [
        annotation("ProfilerStep#0", 0, 1000),
        op("c10d::allreduce_", 100, 5),
        annotation("nccl:all_reduce", 102, 2),
    ]
    with pytest.raises(TrisectError, match="no device-side communication recorded"):
        read(document(events, world_size=2))


def test_a_rank_without_device_work_has_spans_of_no_length(read):
    events = [*cuda_events(), annotation("optimizer", 1220, 50)]
    trace = read(document(events), sections=[*SECTIONS_OF, "optimizer"])
    assert rows(trace.sections[trace.sections["section"] == "optimizer"], "start_ns", "end_ns", "busy_ns") == [
        (1220, 1220, 0)
    ]


def test_a_section_that_comes_back(read):
    events = [
        annotation("ProfilerStep#0", 0, 100),
        annotation("a", 10, 10),
        annotation("a", 30, 10),
        gloo("all_reduce", 32, 5),
    ]
    trace = read(document(events), sections=["a"])
    assert trace.sections["occurrence"].tolist() == [0, 1]
    assert trace.collectives["occurrence"].tolist() == [1]


def test_events_in_any_order_and_base_time_at_the_end(read):
    expected = read(document(cuda_events()), sections=SECTIONS_OF)
    trace = json.loads(document(cuda_events()[::-1]))
    trace["baseTimeNanoseconds"] = trace.pop("baseTimeNanoseconds")
    found = read(json.dumps(trace).encode(), sections=SECTIONS_OF)
    assert found.sections.equals(expected.sections) and found.collectives.equals(expected.collectives)


def test_blocks_smaller_than_the_file(read, monkeypatch):
    whole = read(kineto_layout(document(cuda_events())), sections=SECTIONS_OF)
    for block in (64, 300, 1111):
        monkeypatch.setattr("trisect.trace.source.BLOCK", block)
        for layout in LAYOUTS:
            found = read(layout(document(cuda_events(), INFO=[{"a": 1}, {"b": 2}])), sections=SECTIONS_OF)
            assert found.sections.equals(whole.sections) and found.collectives.equals(whole.collectives)


@pytest.mark.parametrize("base_us", [0, 4_458_676_416_788, 1_682_725_898_079_484])
def test_nanoseconds_are_exact(read, base_us):
    text = document(
        [annotation("ProfilerStep#0", 111, 222), annotation("a", 333, 444)], baseTimeNanoseconds=None
    ).decode()
    for number, exact in (("111", f"{base_us}.001"), ("222", "7.999"), ("333", f"{base_us + 3}.007"), ("444", "1.513")):
        text = text.replace(f": {number}", f": {exact}")
    section = read(text.encode(), sections=["a"]).sections.iloc[0]
    assert section["start_ns"] == (base_us + 3) * US + 7
    assert section["end_ns"] - section["start_ns"] == 1513


def host_job_with_a_wrapper():
    """Ten iterations in which an operator works, calls torch.distributed and works again, inside it all."""
    events = []
    for step in range(10):
        t = 1000 + 1000 * step
        events += [
            annotation(f"ProfilerStep#{step}", t, 900),
            op("Wrapper", t + 10, 500),
            op("aten::mm", t + 20, 100),
            op("aten::resolve_conj", t + 30, 20),
            op("c10d::allreduce_", t + 150, 10),
            gloo("all_reduce", t + 155, 200),
            op("aten::mul", t + 400, 50),
            op("aten::empty", t + 410, 10),
        ]
    return events


@pytest.mark.parametrize("block", [200, 700, 5000, 1 << 20])
@pytest.mark.parametrize("shuffle", [None, 0, 1])
def test_operators_inside_others_count_once_in_any_order(read, monkeypatch, block, shuffle):
    monkeypatch.setattr("trisect.trace.source.BLOCK", block)
    events = host_job_with_a_wrapper()
    if shuffle is not None:
        random.Random(shuffle).shuffle(events)
    trace = read(document(events))
    assert trace.sections["busy_ns"].tolist() == [150 * US] * 10
    assert trace.collectives["hidden_ns"].tolist() == [0] * 10


def test_memory_holds_few_of_the_operators_inside_others(tmp_path):
    events = [annotation("ProfilerStep#0", 1, 10**6)]
    for number in range(2000):
        events += [op("aten::mm", 10 + 100 * number, 90), *(op("aten::view", 20 + 100 * number, 9) for _ in range(9))]
    path = tmp_path / "rank-0.json"
    path.write_bytes(document(events))
    (whole,) = chunks(Reader(path), is_iteration("ProfilerStep"), bool, whole=False)
    assert len(whole.host) < 2000 * 1.02
