"""A local machine, stand-in targets on the ranks' import path, and a watch for processes left behind."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from trisect.config.machine import Machine
from trisect.launch.job import Job
from trisect.launch.run_job import run_job
from trisect.results.layout import RunLayout

TESTS = Path(__file__).parents[2]


@pytest.fixture
def machine() -> Machine:
    return Machine(launcher="local", device="cpu", backend="gloo", gpus_per_node=4)


@pytest.fixture
def layout(tmp_path: Path) -> RunLayout:
    return RunLayout(tmp_path / 'it\'s a "results" folder' / "standin" / "gpus-3")


@pytest.fixture
def standins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


@pytest.fixture
def no_process_left(tmp_path: Path) -> Iterator[None]:
    """After the test no process works below its folder."""
    yield
    deadline = time.monotonic() + 10
    while (left := working_below(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []


def working_below(folder: Path) -> list[str]:
    lines = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        line = " ".join(process.info["cmdline"] or [])
        if str(folder) in line and process.pid != os.getpid():
            lines.append(f"{process.pid} {line}")
    return lines


@pytest.fixture
def run(machine: Machine, layout: RunLayout, standins: None, no_process_left: None) -> Callable[..., list[str]]:
    """Launch a stand-in and return what was reported."""

    def launch_it(ranks: int = 3, target: str = "standins:act", on: Machine = machine, **orders: object) -> list[str]:
        said: list[str] = []
        job = Job(f"standin gpus-{ranks}", target, json.dumps(orders), ranks, 2)
        run_job(job, on, layout, said.append)
        return said

    return launch_it
