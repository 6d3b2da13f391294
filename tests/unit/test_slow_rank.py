"""A real gloo job in which ranks are made late on purpose: each kind of lateness shows up as its own cause of wait."""

import time

import pytest

from trisect.analysis.decomposition import decompose
from trisect.trace.read_job import read_job

LATE_S = 0.1
ITERATIONS = 6


def one_rank(rank, folder):
    import torch
    import torch.distributed as dist
    from torch.profiler import ProfilerActivity, profile, record_function, schedule

    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/store", rank=rank, world_size=2)
    data = torch.ones(1000)

    def section(name, late):
        with record_function(name):
            time.sleep(LATE_S * late)
            dist.all_reduce(data)

    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=ITERATIONS),
        record_shapes=True,
        on_trace_ready=lambda done: done.export_chrome_trace(f"{folder}/rank-{rank}.json"),
    ) as profiler:
        for step in range(ITERATIONS + 1):
            section("same", late=rank == 0)
            section("turns", late=rank == step % 2)
            time.sleep(LATE_S * (rank == 1))
            section("start", late=False)
            dist.barrier()
            profiler.step()
    dist.destroy_process_group()


@pytest.fixture(name="causes", scope="module")
def _causes(tmp_path_factory):
    torch_multiprocessing = pytest.importorskip("torch.multiprocessing")
    folder = tmp_path_factory.mktemp("slow")
    torch_multiprocessing.spawn(one_rank, (str(folder),), nprocs=2)
    table = decompose(read_job(folder, sections=["same", "turns", "start"])).table
    return table.set_index("section")


@pytest.mark.parametrize(("section", "cause"), [("same", "imbalance"), ("turns", "jitter"), ("start", "late_start")])
def test_lateness_shows_as_its_cause(causes, section, cause):
    found = causes.loc[section]
    # One of two ranks waits LATE_S, so the mean wait is half of it. Other load delays either rank, by far less than
    # LATE_S on average, and adds jitter: the wait keeps most of its length, and the cause most of the wait.
    assert found["wait_s"] > LATE_S / 4
    assert found[f"wait_{cause}_s"] > found["wait_s"] / 2
    assert found["transfer_s"] < found["wait_s"]
