"""What can be told about runs before they are launched."""

import subprocess
import sys

from trisect.config.machine import Machine
from trisect.config.plan import Run, Sweep
from trisect.errors import TrisectError
from trisect.results.layout import Layout
from trisect.results.notes import Note, note

_DEVICE_CHECK = """
from trisect.errors import shown
with shown():
    from trisect.worker.device import require
    require("cuda")
"""


def preflight(run: Run, machine: Machine) -> list[Note]:
    """What whole tiles, whole operators and shared cores will do to this run; often nothing."""
    found = [
        note("whole_pieces", pieces=run.pieces[kind], kind=kind, gpus=run.gpus, bound=bound)
        for kind, bound in run.bounds().items()
        if bound < 1
    ]
    if machine.shares_cores(run.gpus):
        found.append(note("shared_cores", ranks=machine.ranks_per_host(run.gpus), cores=machine.cores_per_host))
    return found


def left_out(sweep: Sweep) -> list[Note]:
    """The counts of the sweep at which an experiment is not run, because its problem does not fit."""
    settings, found = sweep.settings, []
    for name in settings.experiments:
        counts = sorted(set(settings.gpus).difference(sweep.counts(name)))
        if counts:
            least = sweep.least_gpus(name)
            found.append(note("too_few_gpus", experiment=name, least=least, size=settings.size, counts=counts))
    return found


def predictable(sweep: Sweep, layout: Layout, experiment: str) -> bool:
    """Whether anything gives a rate to predict with: two ranks, a machine's links, or what a probe left."""
    return sweep.counts(experiment)[-1:] > [1] or sweep.machine.links is not None or layout.fits.exists()


def require_device(machine: Machine) -> None:
    """Check that this machine has the device that a local launch needs, without importing torch here.

    Raises:
        TrisectError: no CUDA device, or this torch has no code for it.
    """
    if machine.launcher != "local" or machine.device == "cpu":
        return
    done = subprocess.run([sys.executable, "-c", _DEVICE_CHECK], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TrisectError(done.stderr.strip().splitlines()[-1].removeprefix("trisect: "))
