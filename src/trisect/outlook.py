"""What can be said about a run before it is launched."""

from __future__ import annotations

import subprocess
import sys

from trisect.config import Run, Sweep
from trisect.errors import TrisectError
from trisect.host import usable_cores
from trisect.layout import Layout
from trisect.settings import Machine


def outlook(run: Run, machine: Machine) -> list[str]:
    """Sentences about what whole tiles, whole operators and shared cores will do to this run; often none."""
    pieces = {"tiles": run.problem_size.tiles, "operators": run.experiment.operators}
    said = [
        f"{pieces[kind]} {kind} on {run.gpus} ranks: load balance of at most {bound:.0%}"
        for kind, bound in run.bounds().items()
        if bound < 1
    ]
    if shares_cores(run.gpus, machine):
        ranks, cores = ranks_on_a_host(run.gpus, machine), cores_of_a_host(machine)
        said.append(f"{ranks} ranks share {cores} cores: slower for that reason alone, which is no scaling loss")
    return said


def predictable(sweep: Sweep, layout: Layout, experiment: str) -> bool:
    """Whether anything gives a rate to predict with: two ranks, a machine's links, or what a probe left."""
    return sweep.counts(experiment)[-1:] > [1] or sweep.machine.links is not None or layout.fits.exists()


def shares_cores(gpus: int, machine: Machine) -> bool:
    """Whether CPU ranks will outnumber the cores of their host."""
    return machine.device == "cpu" and ranks_on_a_host(gpus, machine) > cores_of_a_host(machine)


def ranks_on_a_host(gpus: int, machine: Machine) -> int:
    """The local launcher puts every rank on this machine, whatever the node size."""
    return gpus if machine.launcher == "local" else min(gpus, machine.gpus_per_node)


def cores_of_a_host(machine: Machine) -> int:
    """As the machine's file says, else those that this process may use."""
    if machine.cores_per_node is not None:
        return machine.cores_per_node
    return len(usable_cores())


def require_device(machine: Machine) -> None:
    """Check that this machine has the device that a local launch needs, without importing torch here.

    Raises:
        TrisectError: no CUDA device, or this torch has no code for it.
    """
    if machine.launcher != "local" or machine.device == "cpu":
        return
    command = [sys.executable, "-m", "trisect.bench.device", machine.device]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TrisectError(done.stderr.strip().splitlines()[-1])
