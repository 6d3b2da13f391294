"""A run that fails says which rank, why and where its log is; the others finish, and what was finished stays."""

import hashlib
import re
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from .conftest import Project


def contents(folder: Path) -> dict[str, str]:
    """Hash of every file below a folder."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_wrong_result_fails_its_run_and_the_others_finish(project: Project) -> None:
    project.edit("experiments/training_2d.yaml", lambda c: c.update(tolerance=1e-15))
    targets = [f"results/{name}/gpus-2/decomposition.csv" for name in ("training_2d", "inference_2d")]
    done = project.snakemake(*targets)
    assert done.returncode != 0
    assert "the distributed image differs from the single-process one" in done.stdout
    assert "over the tolerance 1e-15" in done.stdout
    assert re.search(r"rank (\d) on .*results/training_2d/gpus-2/logs/rank-000\1.log", done.stdout, re.DOTALL)
    assert not (project.folder / "results/training_2d/gpus-2/run.json").exists()
    assert (project.folder / targets[1]).exists()
    page = (project.folder / "results/report.html").read_text()
    assert "inference_2d" in page
    assert "the distributed image differs from the single-process one" in page


def test_a_killed_rank_fails_its_run_within_30_s_and_leaves_no_process(project: Project) -> None:
    assert project.snakemake("results/inference_2d/gpus-1/decomposition.csv").returncode == 0
    finished = contents(project.folder / "results/inference_2d/gpus-1")
    project.edit("config.yaml", lambda c: c["iterations"].update(measured=100_000))
    log = project.folder / "results/inference_2d/gpus-2/logs/benchmark.log"
    command = project.command("results/inference_2d/gpus-2/decomposition.csv")
    with subprocess.Popen(
        command, cwd=project.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        try:
            victim = rank_process(running.pid, rank=1, log=log)
            killed_at = time.monotonic()
            victim.kill()
            output = running.communicate(timeout=60)[0]
            took_s = time.monotonic() - killed_at
        finally:
            running.kill()
    assert running.returncode != 0
    assert took_s < 30
    assert "rank 1" in output
    assert "was killed by signal 9" in output
    assert "results/inference_2d/gpus-2/logs/rank-0001.log" in output
    assert processes_below(project.folder) == []
    assert not (project.folder / "results/inference_2d/gpus-2/run.json").exists()
    assert contents(project.folder / "results/inference_2d/gpus-1") == finished


def rank_process(launcher: int, rank: int, log: Path) -> psutil.Process:
    """The process of one rank of a run that is iterating."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if log.exists() and "iteration" in log.read_text():
            for process in psutil.Process(launcher).children(recursive=True):
                if is_rank(process, rank):
                    return process
        time.sleep(0.2)
    return pytest.fail("the run did not start to iterate within 120 s")


def is_rank(process: psutil.Process, rank: int) -> bool:
    try:
        return process.environ().get("RANK") == str(rank) and "trisect.worker.run_worker:work" in process.cmdline()
    except psutil.Error:
        return False


def processes_below(folder: Path) -> list[str]:
    """Command lines of processes that work in a folder or were started with a path in it."""
    found = []
    for process in psutil.process_iter():
        try:
            if str(folder) in " ".join([process.cwd(), *process.cmdline()]):
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found
