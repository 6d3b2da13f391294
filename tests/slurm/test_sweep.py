"""Sweeps on a real cluster: the shipped workflow with its real worker, then stand-ins in numbers."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from trisect.launch.job import Job
from trisect.launch.outcome import Outcome
from trisect.launch.run_job import run_job
from trisect.results.layout import Layout, RunLayout
from trisect.results.record import ProbeRecord, RunRecord
from trisect.results.tables import SCALING

from ..workflow.conftest import Project, make_project
from .cluster import Cluster
from .conftest import TESTS, machine_of

COUNTS = [1, 2, 4, 8, 16]
LAB = {
    **{"launcher": "slurm", "device": "cpu", "backend": "gloo", "gpus_per_node": 4, "nodes": 4},
    "slurm": {"partition": "lab", "time_limit_minutes": 20},
}


def project_on(folder: Path, machine: dict[str, object], counts: list[int]) -> Project:
    """The shipped workflow at tiny size with one experiment, for `--profile profiles/slurm`."""
    project = make_project(folder)
    (folder / "config" / "machines" / "lab.yaml").write_text(yaml.safe_dump(machine))
    sweep = {"machine": "lab", "size": "tiny", "gpus": counts, "experiments": ["inference_2d"]}
    (folder / "profiles" / "slurm" / "sweep.yaml").write_text(yaml.safe_dump(sweep))
    return project


def started(project: Project, *arguments: str) -> subprocess.Popen[str]:
    """Snakemake in a session of its own, as in a terminal of its own."""
    return subprocess.Popen(
        project.command("--profile", "profiles/slurm", *arguments),
        cwd=project.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def read_until(process: subprocess.Popen[str], pattern: str) -> str:
    """The first line of its output that matches."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if re.search(pattern, line):
            return line
    raise AssertionError(f"no {pattern!r} in {''.join(seen)}")


def test_the_whole_sweep(cluster: Cluster, tmp_path: Path) -> None:
    """Over 4 nodes of 4 GPUs, and at the two smallest counts on this machine too."""
    project = project_on(tmp_path / "slurm", LAB, COUNTS)
    done = project.snakemake("--profile", "profiles/slurm", "results/inference_2d/scaling.csv")
    assert done.returncode == 0, done.stdout[-5000:]
    layout = Layout(project.folder / "results")
    on_slurm = pd.read_csv(layout.scaling("inference_2d"))

    local = make_project(tmp_path / "local")
    done = local.snakemake("results/inference_2d/scaling.csv", "--config", "experiments=[inference_2d]")
    assert done.returncode == 0, done.stdout[-5000:]
    here = pd.read_csv(Layout(local.folder / "results").scaling("inference_2d"))

    assert list(on_slurm.columns) == list(here.columns) == list(SCALING)
    keys = ["section", "gpus", "iterations", "collectives", "payload_bytes", "load_balance_bound"]
    assert on_slurm.loc[on_slurm["gpus"] <= 2, keys].equals(here[keys])
    assert sorted(set(on_slurm["gpus"])) == COUNTS
    parts = on_slurm["compute_s"] + on_slurm["transfer_s"] + on_slurm["wait_s"]
    np.testing.assert_allclose(parts, on_slurm["span_s"], rtol=1e-9)
    assert (on_slurm[["compute_s", "transfer_s", "wait_s"]] >= 0).all(axis=None)
    for n in COUNTS:
        check_placement(layout.run("inference_2d", n), n)


def check_placement(run: RunLayout, n: int) -> None:
    """Consecutive ranks on one node, one distinct fake GPU each, and all of it recorded."""
    record = RunRecord.read(run.record)
    assert record.launcher == "slurm"
    assert record.placement_as_intended
    assert [rank.rank for rank in record.ranks] == list(range(n))
    nodes = [rank.host for rank in record.ranks]
    assert len(set(nodes)) == -(-n // 4)
    assert all(len(set(nodes[first : first + 4])) == 1 for first in range(0, n, 4))
    outcomes = [Outcome.read(path) for path in sorted(run.jobs.glob("*/attempt-0/rank-*.json"))]
    assert [o.host for o in outcomes if o] == nodes
    assert len({(o.host, o.device) for o in outcomes if o and o.device in {"0", "1", "2", "3"}}) == n
    assert record.job_id in {path.name.split("_")[0] for path in run.jobs.glob("*/*_submission.sh")}


def test_a_probe_over_two_nodes(cluster: Cluster, tmp_path: Path) -> None:
    probe = {"largest_bytes": 1 << 23, "repetitions": 10, "seconds": 5.0}
    project = project_on(tmp_path, LAB | {"gpus_per_node": 1, "probe": probe}, [2])
    done = project.snakemake("--profile", "profiles/slurm", "probe")
    assert done.returncode == 0, done.stdout[-5000:]
    layout = Layout(project.folder / "results")
    record = ProbeRecord.read(layout.probe(2, "chosen").record)
    assert record.launcher == "slurm"
    assert len({place.host for place in record.ranks}) == 2
    (row,) = pd.read_csv(layout.fits).to_dict("records")
    assert (row["gpus"], row["nodes"], row["ran"]) == (2, 2, "ring")


def test_a_count_that_cannot_start_does_not_hold_back_the_others(cluster: Cluster, tmp_path: Path) -> None:
    """17 nodes, where the cluster has 16 and the machine file does not say so."""
    project = project_on(tmp_path, LAB | {"nodes": None, "gpus_per_node": 1}, [1, 17])
    done = project.snakemake("--profile", "profiles/slurm", "sweep")
    layout = Layout(project.folder / "results")
    assert done.returncode != 0
    assert layout.run("inference_2d", 1).decomposition.exists()
    said = r"would never start, for the reason PartitionNodeLimit|sbatch refused it"
    assert re.search(f"inference_2d gpus-17.*({said})", done.stdout), done.stdout[-3000:]
    assert re.search(said, layout.report.read_text())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_a_lost_snakemake_finds_its_job_again(cluster: Cluster, tmp_path: Path, number: int) -> None:
    """Two at once: the second is refused. The first is killed, or its terminal goes: the third takes its job."""
    project = project_on(tmp_path, LAB, [1])
    target = "results/inference_2d/gpus-1/run.json"
    before = cluster.submitted()
    first = started(project, target)
    job_id = re.findall(r"job (\d+) running", read_until(first, "running"))[0]
    second = project.snakemake("--profile", "profiles/slurm", target)
    assert second.returncode != 0
    assert f"another snakemake is already at work (process {first.pid} on " in second.stdout
    os.kill(first.pid, number) if number == signal.SIGKILL else os.killpg(first.pid, number)
    first.communicate()  # returns when the launcher too has let go of the output
    third = project.snakemake("--profile", "profiles/slurm", target)
    assert third.returncode == 0, third.stdout[-3000:]
    assert f"job {job_id} found again" in third.stdout
    assert RunRecord.read(project.folder / target).job_id == job_id
    assert cluster.submitted() == before + 1


def test_an_installed_profile_is_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    subprocess.run(["make", "install-profiles"], cwd=TESTS.parent, check=True)
    planned = make_project(tmp_path).snakemake(
        "--profile", "slurm", "--dry-run", "results/inference_2d/gpus-64/run.json"
    )
    assert planned.returncode == 0, planned.stdout
    assert f"{tmp_path}/user/snakemake/slurm/sweep.yaml" in planned.stdout


def test_ctrl_c_cancels_what_runs_and_keeps_what_is_done(cluster: Cluster, tmp_path: Path) -> None:
    project = project_on(tmp_path, LAB, [1, 2])
    done, running = (Layout(project.folder / "results").run("inference_2d", n) for n in (1, 2))
    done.traces.mkdir(parents=True)
    done.record.write_text("done")
    snakemake = started(project, "results/inference_2d/gpus-2/run.json")
    job_id = re.findall(r"job (\d+) running", read_until(snakemake, "running"))[0]
    os.killpg(snakemake.pid, signal.SIGINT)
    said, _ = snakemake.communicate(timeout=90)
    assert snakemake.returncode != 0
    assert f"job {job_id} cancelled" in said
    assert cluster.queue("inference_2d gpus-2") == []
    assert done.record.read_text() == "done"
    assert not running.record.exists()


@pytest.mark.parametrize("n", [1, 2, 4, 8, 16, 32, 64])
def test_every_count_with_stand_ins(cluster: Cluster, tmp_path: Path, n: int) -> None:
    layout = RunLayout(tmp_path / f"gpus-{n}")
    run_job(Job(f"standin gpus-{n}", "standins:act", "{}", n, 2), machine_of(), layout, print)
    outcomes = [Outcome.read(path) for path in sorted(layout.jobs.glob("*/attempt-0/rank-*.json"))]
    assert [(o.rank, o.local_rank, o.node, o.world_size, o.device) for o in outcomes if o] == [
        (rank, rank % 4, rank // 4, n, str(rank % 4)) for rank in range(n)
    ]
    assert len({o.host for o in outcomes if o}) == -(-n // 4)
    assert len(list(layout.traces.iterdir())) == n


def test_twenty_jobs_at_once_on_one_node(cluster: Cluster, tmp_path: Path) -> None:
    machine = machine_of(gpus_per_node=2, extra={"gres": "none", "nodelist": "node5"}).model_dump_json()
    names = [f"job-{k}" for k in range(20)]
    launchers = [
        subprocess.Popen(
            [sys.executable, TESTS / "launch_once.py", tmp_path / name, name, "2", json.dumps({"mark": name}), machine],
            env=os.environ | {"TARGET": "standins:meet"},
        )
        for name in names
    ]
    assert [launcher.wait(180) for launcher in launchers] == [0] * 20
    ports = {path.read_text() for path in tmp_path.glob("*/logs/jobs/*/attempt-0/rendezvous.json")}
    assert len(ports) == 20


def test_submitted_from_inside_another_job(cluster: Cluster, tmp_path: Path) -> None:
    """The outer job's binding, counts, array id and rank do not reach the inner one."""
    machine = machine_of(gpus_per_node=2).model_dump_json()
    script = tmp_path / "outer.sh"
    inner = [sys.executable, str(TESTS / "launch_once.py"), str(tmp_path / "run"), "inner", "4", "{}", machine]
    script.write_text(f"#!/bin/bash\nexport RANK=9 WORLD_SIZE=99 PMIX_RANK=9\nsrun {shlex.join(inner)}\n")
    outer = ["sbatch", "--wait", "--array=7", "--ntasks=1", "--gres=gpu:1", f"--output={tmp_path}/outer.log"]
    cluster.command(*outer, str(script))
    seen = json.loads((tmp_path / "run" / "run.json").read_text())["environment"]
    assert (seen["RANK"], seen["WORLD_SIZE"]) == ("0", "4")
    assert "PMIX_RANK" not in seen
    assert [name for name in seen if name.startswith("SLURM")] == ["SLURM_CONF"]
