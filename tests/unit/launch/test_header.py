"""The sbatch header at every count of the published sweep, exact to the byte; a dry run shows the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from submitit.slurm.slurm import _make_sbatch_string

from trisect.config.machine import Machine
from trisect.launch.job import Job
from trisect.launch.request import parameters, request

V100 = Path(__file__).parents[3] / "config" / "machines" / "v100.yaml"

HEADER = """\
#SBATCH --account=abc@v100
#SBATCH --comment=trisect:token
#SBATCH --constraint=v100-32g
#SBATCH --cpus-per-task=10
#SBATCH --distribution=block
#SBATCH --exclusive
#SBATCH --gres=gpu:{per_node}
#SBATCH --hint=nomultithread
#SBATCH --job-name='inference_2d gpus-{n}'
#SBATCH --nodes={nodes}
#SBATCH --ntasks-per-node={per_node}
#SBATCH --open-mode=append
#SBATCH --output=/results/jobs/%j_0_log.out
#SBATCH --partition=gpu_p13
#SBATCH --qos=qos_gpu-t3
#SBATCH --signal=CONT@1
#SBATCH --time=35"""

SRUN = (
    "srun --unbuffered --output /results/jobs/%j_%t_log.out --kill-on-bad-exit=1 --wait=0 --cpus-per-task=10 "
    "--cpu-bind=cores COMMAND"
)


@pytest.mark.parametrize(
    ("n", "nodes", "per_node"), [(1, 1, 1), (2, 1, 2), (4, 1, 4), (8, 2, 4), (16, 4, 4), (32, 8, 4), (64, 16, 4)]
)
def test_header(n: int, nodes: int, per_node: int) -> None:
    machine = Machine.model_validate(yaml.safe_load(V100.read_text()))
    job = Job(f"inference_2d gpus-{n}", "trisect.worker.run_worker:work", "{}", n, 10, limit_minutes=35)
    script = _make_sbatch_string("COMMAND", "/results/jobs", **parameters(job, machine, "trisect:token"))
    assert (
        re.findall("^#SBATCH.*", script, re.MULTILINE)
        == HEADER.format(n=n, nodes=nodes, per_node=per_node).splitlines()
    )
    assert script.rstrip().splitlines()[-1] == SRUN
    assert "module load pytorch-gpu/py3/2.8.0" in script.splitlines()


def test_memory_and_switches() -> None:
    slurm = {"memory_gb_per_node": 64, "extra": {"requeue": True, "exclusive": False, "comment": "ours"}}
    machine = Machine.model_validate(
        {"launcher": "slurm", "device": "cpu", "backend": "gloo", "gpus_per_node": 4, "slurm": slurm}
    )
    script = _make_sbatch_string("COMMAND", "/results", **parameters(Job("x", "m:f", "{}", 1, 1), machine, "trisect:t"))
    lines = script.splitlines()
    assert "#SBATCH --mem=64GB" in lines
    assert "#SBATCH --requeue" in lines
    assert "#SBATCH --comment=ours" in lines
    assert "exclusive" not in script


EXTRA = {"requeue": True, "exclusive": False, "comment": "ours", "time": "1-00:00:00", "gres": "gpu:a100:2"}


@pytest.mark.parametrize(
    "slurm", [{}, {"memory_gb_per_node": 64, "account": "it's", "extra": EXTRA, "modules": ["a b"]}]
)
@pytest.mark.parametrize("gpus", [1, 8])
def test_a_dry_run_shows_what_is_submitted(slurm: dict[str, object], gpus: int) -> None:
    machine = Machine.model_validate(yaml.safe_load(V100.read_text()) | {"slurm": slurm})
    job = Job("x", "m:f", "{}", gpus, 1)
    script = _make_sbatch_string("COMMAND", "/r", **parameters(job, machine, "trisect:t")).splitlines()
    shown = request(job, machine)
    of_the_job = {line.removeprefix("#SBATCH ") for line in script if line.startswith("#SBATCH")}
    # The name is beside the line, the comment is the launcher's, and submitit itself says where output goes.
    asked = {flag for flag in of_the_job if not re.match("--(job-name|comment|output|open-mode)=", flag)}
    shape, sbatch, srun, *setup = shown.split("; ")
    assert sbatch == "sbatch " + " ".join(sorted(asked))
    assert srun == "srun " + script[-1].partition("_log.out ")[2].removesuffix(" COMMAND")
    assert all(line in script for line in setup)
    limit = "at most 1-00:00:00" if slurm else "at most 30 minutes"
    assert shape == f"{'1 node of 1 task' if gpus == 1 else '2 nodes of 4 tasks'}, {limit}"


def test_a_local_run_asks_for_nothing_but_cores() -> None:
    machine = Machine(launcher="local", device="cpu", backend="gloo", gpus_per_node=4, cores_per_node=2)
    assert request(Job("x", "m:f", "{}", 4, 1), machine) == "4 ranks on this machine, which has 2 cores"
