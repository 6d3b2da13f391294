"""Traces that torch wrote: of a small gloo job made here, and public NCCL ones where they are at hand."""

import pytest
from samples import SAMPLES, needs_samples

from trisect.trace.read_job import read_job


def gloo_rank(rank, world_size, folder):
    """Two profiled iterations: a model's forward and backward pass, then collectives of every kind."""
    import torch
    import torch.distributed as dist
    from torch.profiler import ProfilerActivity, profile, record_function, schedule

    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/store", rank=rank, world_size=world_size)
    model = torch.nn.Linear(32, 32)
    data, vector = torch.randn(16, 32), torch.ones(100)
    gathered = [torch.empty(100) for _ in range(world_size)]
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=2),
        record_shapes=True,
        on_trace_ready=lambda done: done.export_chrome_trace(f"{folder}/rank-{rank}.json"),
    ) as profiler:
        for _ in range(3):
            with record_function("forward"):
                loss = model(data).square().mean()
            with record_function("backward"):
                loss.backward()
                for parameter in model.parameters():
                    dist.all_reduce(parameter.grad)
            with record_function("exchange"):
                dist.broadcast(vector, 0)
                dist.all_gather(gathered, vector)
                work = dist.all_reduce(torch.ones(200_000), async_op=True)
                for _ in range(20):
                    data @ data.T
                work.wait()
            dist.barrier()
            profiler.step()
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def gloo_job(tmp_path_factory):
    torch_multiprocessing = pytest.importorskip("torch.multiprocessing")
    folder = tmp_path_factory.mktemp("gloo")
    torch_multiprocessing.spawn(gloo_rank, (2, str(folder)), nprocs=2)
    return read_job(folder, sections=["forward", "backward", "exchange"])


def test_gloo_sections(gloo_job):
    sections = gloo_job.sections
    assert len(sections) == 2 * 2 * 3 and gloo_job.readings["repairs"].tolist() == [0, 0]
    assert (sections["busy_ns"] > 0).all()
    assert (sections["busy_ns"] <= sections["end_ns"] - sections["start_ns"]).all()


def test_gloo_collectives(gloo_job):
    gradients = [("backward", "all_reduce", 4096), ("backward", "all_reduce", 128)]
    exchange = [("exchange", "broadcast", 400), ("exchange", "all_gather", 800), ("exchange", "all_reduce", 800_000)]
    one_iteration = [*gradients, *exchange, ("", "barrier", 0)]
    collectives = gloo_job.collectives
    for _, own in collectives.groupby(["rank", "iteration"]):
        assert list(own[["section", "op", "bytes"]].itertuples(index=False, name=None)) == one_iteration
    assert (collectives["group_size"] == 2).all()
    exposed = collectives["end_ns"] - collectives["start_ns"] - collectives["hidden_ns"]
    assert (exposed >= 0).all() and (collectives["hidden_ns"] >= 0).all()
    # A rank blocks in all but the asynchronous one, so that only there can much be hidden.
    blocking = collectives["bytes"] != 800_000
    assert collectives["hidden_ns"][blocking].sum() < 0.05 * exposed[blocking].sum()


def test_gloo_time_adds_up(gloo_job):
    keys = ["rank", "iteration", "section", "occurrence"]
    collectives = gloo_job.collectives.eval("exposed = end_ns - start_ns - hidden_ns")
    exposed = collectives.groupby(keys)["exposed"].sum()
    sections = gloo_job.sections.set_index(keys)
    accounted = sections["busy_ns"].add(exposed.reindex(sections.index, fill_value=0))
    assert (accounted <= sections["end_ns"] - sections["start_ns"]).all()


@needs_samples
def test_public_nccl_trace():
    names = ["## forward ##", "## backward ##", "## optimizer ##"]
    trace = read_job([SAMPLES / "ddp_nccl_rank0_of_2.json.gz"], sections=names)
    assert trace.sections.groupby("section").size().to_dict() == dict.fromkeys(names, 3)
    assert trace.readings[["rank", "repairs", "unattributed_ns"]].to_numpy().tolist() == [[0, 0, 0]]
    assert trace.notes == []
    # 2 broadcasts of buffers in each forward pass, 5 buckets of gradients in each backward pass.
    counts = trace.collectives.groupby(["iteration", "section", "op"]).size()
    assert counts.to_dict() == {
        (step, f"## {section} ##", op): count
        for step in (4, 5, 6)
        for section, op, count in (("forward", "broadcast", 2), ("backward", "all_reduce", 5))
    }
    first = trace.collectives[trace.collectives["op"] == "broadcast"].iloc[:2]
    assert first["bytes"].tolist() == [53120 * 4, 53 * 8]
    assert (trace.collectives["group_size"] == 2).all()


@needs_samples
def test_public_sampled_traces():
    paths = [SAMPLES / f"sampled_rank{rank}_of_128.json.gz" for rank in (0, 1)]
    trace = read_job(paths)
    assert trace.readings["rank"].tolist() == [0, 1]
    # All kernels bear the name of SendRecv: the operation comes from the annotation around each launch.
    assert trace.collectives.groupby(["rank", "op"]).size().to_dict() == {
        (rank, op): count for rank in (0, 1) for op, count in (("all_gather", 2), ("all_reduce", 4), ("all_to_all", 4))
    }
    assert trace.collectives[trace.collectives["op"] == "all_gather"]["bytes"].unique().tolist() == [16_777_216 * 128]
    assert (trace.collectives["group_size"] == 128).all()
