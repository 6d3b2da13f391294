"""A trace read in chunks gives what it gives when read whole, whatever the order of its events."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kineto import AUTOGRAD, NCCL_ARGS, annotation, document, gloo, kernel, kineto_layout, launch, launched, nccl, op

from trisect.errors import TrisectError
from trisect.synthetic.ground_truth import SyntheticExchange, SyntheticJob, SyntheticSection
from trisect.synthetic.kineto_writer import write_job
from trisect.trace import read_rank as rank_module
from trisect.trace.chunks import chunks
from trisect.trace.event_reader import Reader
from trisect.trace.read_rank import read_rank
from trisect.trace.windows import is_iteration, is_measured

US = 1_000
STEPS = 12
NAMES = ["gradient", "denoiser"]
LISTED = {"deviceProperties": [{"id": 0}]}


def job_events(flavour, folder):
    """The events of a rank: twelve iterations of two sections, some compute hidden, closed by a barrier."""
    exchange = SyntheticExchange((300 * US, 500 * US), 100 * US, payload_bytes=400, hidden_ns=20 * US)
    sections = (
        SyntheticSection("gradient", (exchange, exchange)),
        SyntheticSection("denoiser", (exchange,), tail_ns=50 * US),
    )
    job = SyntheticJob(2, (sections,) * STEPS, flavour=flavour, barrier_ns=10 * US)
    return json.loads(write_job(job, folder, compress=False)[0].read_bytes())["traceEvents"]


@pytest.fixture(scope="module")
def events_of(tmp_path_factory):
    return {flavour: job_events(flavour, tmp_path_factory.mktemp(flavour)) for flavour in ("gloo", "nccl")}


@pytest.fixture
def both(tmp_path, monkeypatch):
    """Read a text in chunks of few events, and whole: both as comparable values, and how many chunks there were."""

    def read(text, rows=40, block=1500):
        path = tmp_path / "rank-0.json"
        path.write_bytes(text)
        counts = []

        def counting(*arguments):
            reader, recording, parts = original(*arguments)
            counts.append(len(parts))
            return reader, recording, parts

        with monkeypatch.context() as patch:
            original = rank_module._parts
            patch.setattr(rank_module, "_parts", counting)
            whole = outcome(path)
            counts.clear()
            patch.setattr("trisect.trace.chunks.ROWS", rows)
            patch.setattr("trisect.trace.source.BLOCK", block)
            return outcome(path), whole, counts

    return read


def outcome(path):
    try:
        one = read_rank(path, NAMES, "ProfilerStep")
    except TrisectError as error:
        return str(error)
    columns = {
        f"{table}.{name}": np.asarray(column).tolist()
        for table, part in (("sections", one.sections), ("collectives", one.collectives), ("reading", one.reading))
        for name, column in part.items()
    }
    return columns | {"rank": one.rank, "base": one.base_ns, "names": one.annotations}


@pytest.mark.parametrize("flavour", ["gloo", "nccl"])
@pytest.mark.parametrize("layout", [lambda text: text, kineto_layout])
def test_a_file_in_order_of_time_is_read_in_many_chunks(events_of, both, flavour, layout):
    found, whole, counts = both(layout(document(events_of[flavour], world_size=2, **LISTED)))
    assert found == whole and len(whole["sections.iteration"]) == 2 * STEPS
    assert counts[-1] >= 3


def test_annotations_before_all_device_activity_as_kineto_writes_them(events_of, both):
    of_device = ("kernel", "cuda_runtime", "ac2g")
    events = sorted(events_of["nccl"], key=lambda one: one["cat"] in of_device)
    found, whole, counts = both(kineto_layout(document(events, world_size=2, **LISTED)))
    assert found == whole and len(whole["sections.iteration"]) == 2 * STEPS
    assert len(counts) == 1 and counts[0] >= 3


def test_a_device_alone_needs_no_second_reading(both):
    events = [*steps(), op("c10d::barrier", 1500, 5)]
    for world_size, readings in ((1, 1), (2, 2)):
        found, whole, counts = both(document(events, world_size=world_size, **LISTED), rows=10_000)
        assert found == whole and len(counts) == readings


moves = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.3), st.floats(0, 1), st.booleans()), max_size=3)


@given(st.sampled_from(["gloo", "nccl"]), moves, st.sampled_from([20, 40, 120]), st.sampled_from([400, 1500, 9000]))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_events_that_come_elsewhere_or_twice_change_nothing(events_of, both, flavour, moved, rows, block):
    events = list(events_of[flavour])
    for start, share, to, twice in moved:
        first = int(start * len(events))
        piece = events[first : first + int(share * len(events)) + 1]
        if not twice:
            del events[first : first + len(piece)]
        at = int(to * len(events))
        events[at:at] = piece
    found, whole, _ = both(document(events, world_size=2), rows, block)
    assert found == whole


def test_memory_holds_a_few_chunks_at_most(events_of, tmp_path, monkeypatch):
    monkeypatch.setattr("trisect.trace.chunks.ROWS", 60)
    monkeypatch.setattr("trisect.trace.source.BLOCK", 500)
    for flavour, events in events_of.items():
        path = tmp_path / f"{flavour}.json"
        path.write_bytes(document(events))
        is_step = is_iteration("ProfilerStep")
        sizes = [len(part) for part in chunks(Reader(path), is_step, is_measured(NAMES, is_step), whole=False)]
        assert len(sizes) >= 3 and max(sizes) < 2 * 60


def steps(*own):
    """Iterations of 1000 us, each with a kernel of 500 us, and what `own` adds to each by its number."""
    events = []
    for step in range(STEPS):
        at = 1000 + 1000 * step
        events += [annotation(f"ProfilerStep#{step}", at, 900), annotation("gradient", at + 10, 700)]
        events += launched(10 * step + 1, at + 20, at + 40, 500)
        events += [one for add in own for one in add(step, at)]
    return events


DISORDERS = {
    "a kernel that runs into the next iteration": lambda k, t: launched(10 * k + 2, t + 800, t + 850, 300, stream=8),
    "kernels that come an iteration late": lambda k, t: [
        launch(10 * k + 3, t + 60),
        *([kernel(10 * k - 7, t + 5, 20, stream=8)] if k else []),
    ],
    "kernels that come at the end": lambda k, t: (
        [launch(10 * k + 3, t + 60)] * (k < 4)
        + [kernel(10 * j + 3, t + 600 + j, 1, stream=8) for j in range(4) if k == STEPS - 1]
    ),
    "the same with ids of their own": lambda k, t: (
        [launch(1000 + k, t + 60)]
        + [kernel(1000 + j, t + 600 + j, 1, stream=8) for j in range(STEPS) if k == STEPS - 1]
    ),
    "a section over two iterations": lambda k, t: [annotation("denoiser", t + 800, 300)] * (k == 3),
    "one graph, launched once": lambda k, t: (
        [launch(3, t, name="cudaGraphLaunch")] * (k == 0) + [kernel(3, t + 600, 9)]
    ),
    "kernels without a launch": lambda k, t: [kernel(-1, t + 600, 50)],
    "launches whose kernels are lost": lambda k, t: [launch(10 * k + 4, t + 70)],
    "an id that comes back": lambda k, t: launched(7, t + 600, t + 650, 10),
    "kernels without an id": lambda k, t: [launch(-1, t + 60), kernel(-1, t + 600, 50)],
    "an NCCL kernel under the next iteration": lambda k, t: nccl(10 * k + 5, t + 600, t + 900, 400, **NCCL_ARGS),
    "a collective of the host meanwhile": lambda k, t: [op("c10d::barrier", t + 750, 5), gloo("barrier", t + 755, 20)],
    "an NCCL kernel and one of the host": lambda k, t: [
        *nccl(10 * k + 5, t + 600, t + 850, 100, **NCCL_ARGS),
        gloo("barrier", t + 760, 20),
    ],
    "a zero timestamp at the end": lambda k, t: [kernel(10 * k + 6, 0, 9)] * (k == STEPS - 1),
    "an iteration twice": lambda k, t: [annotation("ProfilerStep#0", t, 900)] * (k == STEPS - 1),
    "an overflow": lambda k, t: launched(10 * k + 2, t + 560, t + 600, 1e16 if k == 2 else 9),
}


@pytest.mark.parametrize("what", DISORDERS)
@pytest.mark.parametrize("header", [{}, LISTED])
def test_what_reaches_over_iterations_is_read_as_if_whole(both, what, header):
    found, whole, _ = both(document(steps(DISORDERS[what]), world_size=2, **header), rows=12, block=300)
    assert found == whole


HOST_DISORDERS = {
    "collectives that are taken up an iteration late": lambda k, t: [
        op("c10d::allreduce_", t + 100, 5),
        gloo("all_reduce", t + 1100, 50),
    ],
    "calls that the trace lacks": lambda k, t: (
        [gloo("all_reduce", t + 100, 50)] + [op("c10d::allreduce_", t + 90, 5)] * (k != STEPS - 2)
    ),
    "an operator over two iterations": lambda k, t: [op("aten::mm", t + 800, 500)] * (k == 5),
    "autograd that is known for it late": lambda k, t: [
        op("autograd::engine::evaluate_function: X" if k == STEPS - 1 else "aten::mul", t + 300, 50, AUTOGRAD)
    ],
    "a wrapper whose call comes an iteration late": lambda k, t: (
        [op("Wrapper", t + 100, 80), op("aten::mm", t + 110, 9)] + [op("c10d::barrier", t - 880, 5)] * (k > 0)
    ),
    "no collectives": lambda k, t: [op("aten::mm", t + 100, 80)],
}


@pytest.mark.parametrize("what", HOST_DISORDERS)
def test_the_same_on_the_host(both, what):
    events = [one for one in steps(HOST_DISORDERS[what]) if one["cat"] not in ("kernel", "cuda_runtime")]
    found, whole, _ = both(document(events, world_size=2), rows=10, block=300)
    assert found == whole


def test_device_activity_that_appears_late(both):
    events = [*steps()[: 5 * (STEPS - 2)], *(op("aten::mm", 1100 + 1000 * k, 90) for k in range(3))]
    on_host = [one for one in events if one["cat"] != "kernel"]
    found, whole, _ = both(document([*on_host, *steps()[5 * (STEPS - 2) :]]), rows=10, block=300)
    assert found == whole


def test_group_sizes_stated_only_at_the_end(both):
    events = steps(lambda k, t: [op("c10d::allgather_", t + 600, 5), gloo("all_gather", t + 605, 20)])
    events = [one for one in events if one["cat"] not in ("kernel", "cuda_runtime")]
    trace = json.loads(document(events, world_size=4))
    trace["distributedInfo"] = trace.pop("distributedInfo")
    found, whole, _ = both(json.dumps(trace).encode(), rows=10, block=300)
    assert found == whole and set(whole["collectives.bytes"]) == {160}
