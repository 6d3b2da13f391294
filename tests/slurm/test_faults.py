"""Each fault on a real cluster: the diagnosis, the message, an empty queue, finished results as they were."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trisect.config.machine import Machine
from trisect.errors import TrisectError
from trisect.launch.job import Job
from trisect.launch.run_job import run_job
from trisect.results.layout import RunLayout

from .cluster import Cluster
from .conftest import Launcher, machine_of, small_disk

NAME = "standin gpus-4"
Run = Callable[..., list[str]]
Start = Callable[..., Launcher]


@pytest.fixture(autouse=True)
def _nothing_queued(cluster: Cluster) -> Iterator[None]:
    yield
    deadline = time.monotonic() + 20
    while cluster.queue(NAME) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert cluster.queue(NAME) == []


def failure(run: Run, **orders: object) -> tuple[str, str]:
    """First line of the message, and the rest."""
    with pytest.raises(TrisectError) as raised:
        run(**orders)
    first, _, rest = str(raised.value).partition("\n")
    return first, rest


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("raise", "rank 3 on node2 raised ValueError: the detector is upside down"),
        ("kill", "rank 3 on node2 was killed by signal 9"),
        ("kill_supervisor", "rank 3 on node2 was killed together with its supervisor"),
        ("exit_3", "rank 3 on node2 exited early with code 3"),
        ("vanish", "rank 3 on node2 exited early with code 0"),
    ],
)
def test_a_rank_fails(run: Run, layout: RunLayout, fault: str, said: str) -> None:
    first, rest = failure(run, faults={"3": fault}, others="sleep")
    assert said in first
    assert "rank 3 says hello" in rest
    assert str(layout.log(3)) in rest
    assert not layout.record.exists()


def test_a_rank_hangs(run: Run) -> None:
    first, rest = failure(run, faults={"2": "sleep"}, others="timed_out")
    assert "rank 2 on node2 did not join a collective within 300 s, for which ranks 0, 1, 3 waited" in first
    assert "rank 2 says hello" in rest


def test_cancelled_from_outside(cluster: Cluster, launcher: Start) -> None:
    started = launcher(others="sleep")
    job_id = re.findall(r"job (\d+) running", started.until("iteration 1"))[0]
    cluster.command("scancel", job_id)
    code, said = started.end()
    assert code == 2
    assert f"SLURM job {job_id} was cancelled by root" in said


def test_the_controller_restarts(cluster: Cluster, launcher: Start, layout: RunLayout, tmp_path: Path) -> None:
    before = cluster.submitted()
    started = launcher(release=str(tmp_path / "go"))
    started.until("iteration 1")
    cluster.kill("slurmctld", signal.SIGTERM)
    (tmp_path / "go").touch()
    time.sleep(3)
    cluster.start_controller()
    code, said = started.end()
    assert code == 0, said
    assert layout.record.exists()
    assert cluster.submitted() == before + 1


def test_accounting_is_down_while_a_job_ends(cluster: Cluster, run: Run, layout: RunLayout) -> None:
    cluster.kill("slurmdbd")
    try:
        run(mark="unaccounted")
        assert layout.trace(3).read_text().endswith("unaccounted")
        first, _ = failure(run, faults={"1": "kill"}, others="sleep")
        assert "rank 1 on node1 was killed by signal 9" in first
    finally:
        cluster.start_accounting()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_launcher_cancels_its_job(launcher: Start, layout: RunLayout, number: int) -> None:
    started = launcher(others="sleep")
    started.until("iteration 1")
    started.process.send_signal(number)
    code, said = started.end()
    assert code in (-signal.SIGINT, 128 + signal.SIGTERM)
    assert "cancelled" in said
    assert not layout.job.exists()


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL])
def test_a_lost_launcher_leaves_its_job_to_the_next(
    cluster: Cluster, launcher: Start, layout: RunLayout, tmp_path: Path, number: int
) -> None:
    before = cluster.submitted()
    orders = {"release": str(tmp_path / "go"), "mark": "once"}
    first = launcher(**orders)
    job_id = re.findall(r"job (\d+) running", first.until("iteration 1"))[0]
    first.process.send_signal(number)
    first.end()
    assert cluster.queue(NAME) == [job_id]
    second = launcher(**orders)
    assert f"job {job_id} found again (running)" in second.until("found again")
    (tmp_path / "go").touch()
    code, said = second.end()
    assert code == 0, said
    assert layout.trace(3).read_text() == f"trace of {job_id} once"
    assert cluster.submitted() == before + 1


def test_a_job_that_ended_unwatched_is_taken_over(
    cluster: Cluster, launcher: Start, layout: RunLayout, tmp_path: Path
) -> None:
    before = cluster.submitted()
    orders = {"release": str(tmp_path / "go"), "mark": "once"}
    first = launcher(**orders)
    first.until("iteration 1")
    first.process.kill()
    first.end()
    (tmp_path / "go").touch()
    while cluster.queue(NAME):
        time.sleep(0.2)
    assert not layout.record.exists()
    code, said = launcher(**orders).end()
    assert code == 0, said
    assert "found again (completed)" in said
    assert layout.record.exists()
    assert cluster.submitted() == before + 1


def test_a_job_of_another_configuration_is_cancelled(cluster: Cluster, launcher: Start, layout: RunLayout) -> None:
    first = launcher(others="sleep")
    first.until("iteration 1")
    first.process.kill()
    first.end()
    code, said = launcher(mark="new").end()
    assert code == 0, said
    assert "is of another configuration; cancelled" in said
    assert layout.trace(0).read_text().endswith("new")


def test_a_second_launcher_is_refused(launcher: Start, tmp_path: Path) -> None:
    orders = {"release": str(tmp_path / "go")}
    first = launcher(**orders)
    first.until("iteration 1")
    code, said = launcher(**orders).end()
    assert code == 2
    assert f"another launcher of standin gpus-4 is already at work (process {first.process.pid} on " in said
    (tmp_path / "go").touch()
    code, said = first.end()
    assert code == 0, said


def test_the_disk_is_full(cluster: Cluster, machine: Machine) -> None:
    disk = small_disk(cluster)
    layout = RunLayout(disk / "gpus-4")
    orders = {"faults": {"1": "disk_full"}, "others": "sleep", "full": str(disk / "big")}
    with pytest.raises(TrisectError, match="the disk that holds the results is full") as raised:
        run_job(Job(NAME, "standins:act", json.dumps(orders), 4, 2), machine, layout, print)
    assert "free space there or set `results` to a larger disk" in str(raised.value)


def test_a_node_fails(cluster: Cluster, launcher: Start, layout: RunLayout, tmp_path: Path) -> None:
    """Its slurmd dies and leaves the ranks as orphans: one job is requeued, one may not be."""
    before = cluster.submitted()
    requeued = launcher(release=str(tmp_path / "go"))
    node = "node" + re.findall(r"running on node\[?(\d+)", requeued.until("iteration 1"))[0]
    alone = machine_of(gpus_per_node=2, extra={"no_requeue": True, "nodelist": f"{node},node16"})
    not_requeued = launcher(on=alone, at=RunLayout(tmp_path / "other"), others="sleep")
    not_requeued.until("iteration 1")
    cluster.kill(node)
    try:
        code, said = not_requeued.end(90)
        assert code == 2
        assert re.search(r"SLURM job \d+ lost a node", said), said
        (tmp_path / "go").touch()
        code, said = requeued.end(90)
    finally:
        cluster.start_node(node)
    assert code == 0, said
    assert cluster.submitted() == before + 2
    hosts = {json.loads(path.read_text())["host"] for path in layout.logs.glob("jobs/*/attempt-1/rank-*.json")}
    assert len(hosts) == 2
    assert node not in hosts


def test_preempted_and_requeued(cluster: Cluster, launcher: Start, layout: RunLayout, tmp_path: Path) -> None:
    before = cluster.submitted()
    started = launcher(on=machine_of(gpus_per_node=2, partition="low"), release=str(tmp_path / "go"))
    started.until("iteration 1")
    cluster.command("sbatch", "--nodelist=node[1-4]", "--exclusive", "--output=/dev/null", "--wrap=sleep 5")
    started.until("pending")
    (tmp_path / "go").touch()
    code, said = started.end(120)
    assert code == 0, said
    assert len(list(layout.logs.glob("jobs/*/attempt-*"))) == 2
    assert cluster.submitted() == before + 2


def test_a_job_that_would_never_start(run: Run) -> None:
    first, _ = failure(run, on=machine_of(gpus_per_node=2, time_limit_minutes=100))
    assert "would never start, for the reason PartitionTimeLimit, and was cancelled" in first


def test_too_few_nodes_are_refused_before_submission(cluster: Cluster, run: Run) -> None:
    before = cluster.submitted()
    first, _ = failure(run, ranks=8, on=machine_of(gpus_per_node=2, nodes=3))
    assert "gpus: 8 needs 4 nodes of 2, the machine has 3" in first
    assert cluster.submitted() == before


def test_sbatch_refuses(run: Run, layout: RunLayout) -> None:
    first, _ = failure(run, on=machine_of(gpus_per_node=2, partition="nowhere"))
    assert "sbatch refused it" in first
    assert "invalid partition" in first
    assert not layout.job.exists()


def test_a_time_limit_strikes(limited: Launcher) -> None:
    code, said = limited.end(120)
    assert code == 2
    assert "reached its time limit of 1 minutes on node[1-2]" in said
    assert "raise slurm.time_limit_minutes (now 1)" in said
    assert "says hello" in said
