"""One real cluster for all tests of this folder, and what must hold after each of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trisect.config.machine import Machine, Slurm
from trisect.launch.job import Job
from trisect.launch.run_job import run_job
from trisect.results.layout import RunLayout

from .cluster import Cluster, why_not

TESTS = Path(__file__).parents[1]


class Launcher:
    """A launcher in a process of its own, whose lines can be waited for."""

    def __init__(
        self,
        layout: RunLayout,
        machine: Machine,
        orders: dict[str, object],
        name: str = "standin gpus-4",
        variables: dict[str, str] | None = None,
    ) -> None:
        self.lines: list[str] = []
        as_json = machine.model_dump_json()
        self.process = subprocess.Popen(
            [sys.executable, TESTS / "launch_once.py", layout.folder, name, "4", json.dumps(orders), as_json],
            env=os.environ | (variables or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def until(self, text: str) -> str:
        """Read lines up to the first one with `text` in it."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if text in line:
                return line
        raise AssertionError(f"no {text!r} in {self.lines}; {self.process.communicate()[1]}")

    def end(self, seconds: float = 60) -> tuple[int, str]:
        """Exit code, and all that it said."""
        out, err = self.process.communicate(timeout=seconds)
        return self.process.returncode, "".join(self.lines) + out + err


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """16 nodes of 4 fake GPUs; most tests use a few of them."""
    reason = why_not()
    if reason and os.environ.get("CI"):
        pytest.fail(f"these tests must run here, but: {reason}")
    if reason:
        pytest.skip(reason)
    started = Cluster(Path(tempfile.mkdtemp(prefix="slurm-")), nodes=16)  # short: a socket's path has 107 bytes
    disk = small_disk(started)
    disk.mkdir()
    # Before the nodes start: they have their own view of what is mounted.
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", disk], check=True)
    try:
        started.start()
        yield started
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
        started.stop()
    assert started.processes() == []


def small_disk(cluster: Cluster) -> Path:
    """A file system of 16 MB."""
    return cluster.home / "small-disk"


@pytest.fixture(scope="session")
def limited(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    """A run that the time limit will strike, started first because it takes a minute; it holds no GPU."""
    machine = machine_of(gpus_per_node=2, time_limit_minutes=1, extra={"gres": "none"})
    folder = tmp_path_factory.mktemp("limited")
    variables = cluster.variables | {"PYTHONPATH": str(TESTS)}
    started = Launcher(RunLayout(folder), machine, {"others": "sleep"}, name="limited", variables=variables)
    started.until("iteration 1")
    yield started
    started.process.kill()
    started.process.communicate()


@pytest.fixture(autouse=True)
def _client(cluster: Cluster, limited: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in cluster.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


@pytest.fixture
def layout(tmp_path: Path) -> RunLayout:
    return RunLayout(tmp_path / 'it\'s a "results" folder' / "standin" / "gpus-4")


@pytest.fixture
def finished(tmp_path: Path) -> Iterator[Path]:
    """A finished run in the same results folder, which nothing may touch."""
    record = tmp_path / 'it\'s a "results" folder' / "standin" / "gpus-1" / "run.json"
    record.parent.mkdir(parents=True)
    record.write_text("finished")
    before = record.stat()
    yield record
    assert record.read_text() == "finished"
    assert record.stat().st_mtime_ns == before.st_mtime_ns


@pytest.fixture
def machine() -> Machine:
    return machine_of(gpus_per_node=2)


def machine_of(gpus_per_node: int = 4, nodes: int = 16, **slurm: object) -> Machine:
    return Machine(
        launcher="slurm",
        device="cpu",
        backend="gloo",
        gpus_per_node=gpus_per_node,
        nodes=nodes,
        slurm=Slurm.model_validate({"time_limit_minutes": 10, "partition": "lab"} | slurm),
    )


@pytest.fixture
def run(machine: Machine, layout: RunLayout, finished: Path) -> Callable[..., list[str]]:
    """Launch a stand-in from this process, and return what was reported."""

    def launch_it(ranks: int = 4, on: Machine = machine, **orders: object) -> list[str]:
        said: list[str] = []
        run_job(Job(f"standin gpus-{ranks}", "standins:act", json.dumps(orders), ranks, 2), on, layout, said.append)
        return said

    return launch_it


@pytest.fixture
def launcher(layout: RunLayout, machine: Machine, finished: Path) -> Iterator[Callable[..., Launcher]]:
    """Start a launcher in a process of its own."""
    started: list[Launcher] = []

    def start(on: Machine = machine, at: RunLayout = layout, **orders: object) -> Launcher:
        started.append(Launcher(at, on, orders))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.communicate()
