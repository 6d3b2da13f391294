"""Real processes on this machine; stand-ins instead of torch."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from trisect.config.machine import Machine
from trisect.errors import TrisectError
from trisect.host import locked
from trisect.launch.job import Job
from trisect.launch.run_job import run_job
from trisect.results.layout import RunLayout

Run = Callable[..., list[str]]
HERE = Path(__file__)
LAUNCH_ONCE = HERE.parents[2] / "launch_once.py"


def test_results_and_logs_stand_in_the_run_folder(run: Run, layout: RunLayout) -> None:
    said = run(3, mark="first")
    assert sorted(path.name for path in layout.traces.iterdir()) == [layout.trace(r).name for r in range(3)]
    assert layout.trace(2).read_text().endswith("first")
    assert [layout.log(r).read_text() for r in range(3)] == [f"rank {r} says hello\n" for r in range(3)]
    assert said[-1] == "standin gpus-3: done"


def test_rank_environment(run: Run, layout: RunLayout, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "7", "MASTER_PORT": "1", "SLURM_CPU_BIND": "x", "OMP_NUM_THREADS": "1"}.items():
        monkeypatch.setenv(name, value)
    run(2)
    seen = json.loads(layout.record.read_text())["environment"]
    assert (seen["RANK"], seen["WORLD_SIZE"], seen["LOCAL_RANK"], seen["LOCAL_WORLD_SIZE"]) == ("0", "2", "0", "2")
    assert seen["MASTER_ADDR"] == "127.0.0.1"
    assert seen["MASTER_PORT"] != "1"
    assert seen["OMP_NUM_THREADS"] == str(max(1, len(os.sched_getaffinity(0)) // 2))
    assert "SLURM_CPU_BIND" not in seen
    assert not [name for name in seen if name.startswith("SUBMITIT_")]
    assert os.environ["RANK"] == "7", "the launcher's own environment is as before"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("raise", "rank 1 on {host} raised ValueError: the detector is upside down"),
        ("kill", "rank 1 on {host} was killed by signal 9"),
        ("kill_supervisor", "rank 1 on {host} was killed together with its supervisor"),
        ("exit_3", "rank 1 on {host} exited early with code 3"),
        ("vanish", "rank 1 on {host} exited early with code 0"),
    ],
)
def test_a_failed_rank_ends_the_run(run: Run, layout: RunLayout, fault: str, said: str) -> None:
    begin = time.monotonic()
    with pytest.raises(TrisectError) as failure:
        run(3, faults={"1": fault}, others="sleep")
    assert time.monotonic() - begin < 30
    first, *rest = str(failure.value).splitlines()
    assert said.format(host=os.uname().nodename) in first
    assert str(layout.log(1)) in rest[0]
    assert "rank 1 says hello" in "\n".join(rest)
    assert not layout.record.exists()


def test_the_cause_is_named_and_not_the_peers_that_lost_it(run: Run) -> None:
    with pytest.raises(TrisectError, match=r"rank 2 on .* raised ValueError"):
        run(3, faults={"0": "peer_closed", "1": "peer_closed", "2": "raise"})


def test_a_hanging_rank_is_named(run: Run) -> None:
    with pytest.raises(
        TrisectError, match=r"rank 1 on .* did not join a collective within 300 s, for which ranks 0, 2"
    ):
        run(3, faults={"1": "sleep"}, others="timed_out")


def test_a_target_that_does_not_exist(run: Run) -> None:
    with pytest.raises(TrisectError, match=r"rank \d on .* raised ModuleNotFoundError: No module named 'nowhere'"):
        run(2, target="nowhere:work")


def test_a_failed_run_leaves_finished_results_as_they_were(run: Run, layout: RunLayout) -> None:
    run(2, mark="good")
    before = {path: path.read_bytes() for path in [layout.record, layout.trace(0), layout.trace(1)]}
    with pytest.raises(TrisectError):
        run(2, mark="bad", faults={"1": "raise"}, others="sleep")
    assert {path: path.read_bytes() for path in before} == before


def test_a_second_launcher_of_the_same_run_is_refused(run: Run, layout: RunLayout) -> None:
    with locked(layout.lock, "x"), pytest.raises(TrisectError, match=f"already at work .*{os.getpid()}"):
        run(2)


def test_a_results_folder_that_slurm_would_misread(machine: Machine, tmp_path: Path) -> None:
    job = Job("x gpus-1", "standins:act", "{}", 1, 1)
    with pytest.raises(TrisectError, match="has a % or a backslash in it"):
        run_job(job, machine, RunLayout(tmp_path / "100%"), print)


def test_topology_and_nccl_logs_are_kept(
    run: Run, machine: Machine, layout: RunLayout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a stand-in for nvidia-smi, and a target that writes where NCCL would."""
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho asked for: $*\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    cuda = machine.model_copy(update={"device": "cuda", "backend": "nccl"})
    run(2, on=cuda, target="standins:log_like_nccl")
    (topology,) = layout.logs.glob("topology-*.txt")
    assert "asked for: topo -m" in topology.read_text()
    assert len(list((layout.logs / "nccl").glob("nccl-*.log"))) == 2


def test_jobs_at_once_do_not_clash(standins: None, no_process_left: None, machine: Machine, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from trisect.launch.job import Job;"
        "from trisect.launch.run_job import run_job;"
        "from trisect.config.machine import Machine; from trisect.results.layout import RunLayout;"
        "run_job(Job(sys.argv[1], 'standins:meet', '{\"mark\": \"%s\"}' % sys.argv[1], 3, 1),"
        " Machine.model_validate_json(sys.argv[2]), RunLayout(Path(sys.argv[3]) / sys.argv[1]), print)"
    )
    arguments = [sys.executable, "-c", code]
    launchers = [subprocess.Popen([*arguments, f"job-{k}", machine.model_dump_json(), str(tmp_path)]) for k in range(4)]
    assert [launcher.wait(60) for launcher in launchers] == [0] * 4


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, -signal.SIGINT),
        (signal.SIGTERM, 128 + signal.SIGTERM),
        (signal.SIGHUP, 128 + signal.SIGHUP),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_the_launcher_takes_its_ranks_with_it(
    standins: None, no_process_left: None, machine: Machine, layout: RunLayout, number: int, code: int
) -> None:
    payload = json.dumps({"others": "sleep"})
    launcher = subprocess.Popen(
        [sys.executable, LAUNCH_ONCE, layout.folder, "standin", "2", payload, machine.model_dump_json()],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert launcher.stdout is not None
    while "iteration 1 of 2" not in launcher.stdout.readline():
        assert launcher.poll() is None
    assert len(psutil.Process(launcher.pid).children(recursive=True)) == 5  # controller, 2 supervisors, 2 ranks
    launcher.send_signal(number)
    assert launcher.wait(20) == code
    launcher.stdout.close()
