"""What `trisect rates` says: an experiment's results folder and its NCCL logs to implied rates."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from trisect.comm.nccl_log import UNKNOWN, algorithm_for, read_tuning
from trisect.comm.rates import implied
from trisect.errors import TrisectError
from trisect.layout import Layout, RunLayout
from trisect.outlook import ranks_on_a_host
from trisect.settings import Machine


def rates_in_words(results: Path, machine: Machine) -> list[str]:
    """The table of implied rates, and what to know about it, as lines.

    Args:
        results: an experiment's folder, with scaling.csv and its runs.
        machine: what it ran on.

    Raises:
        TrisectError: there is no scaling.csv, or nothing in it moves known bytes, or a log is of another run.
    """
    layout = Layout(results.parent)
    path = layout.scaling(results.name)
    try:
        scaling = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise TrisectError(f"{path}: not readable as a table ({' '.join(str(error).split())}); run the sweep") from None
    counts = sorted(int(n) for n in scaling["gpus"].unique())
    algorithms: dict[tuple[str, int], str] = {}
    notes = []
    for gpus in counts:
        found, cut = _algorithms(layout.run(results.name, gpus), gpus)
        algorithms |= found
        notes += [f"Note: {cut} lines of the NCCL logs at {gpus} GPUs were cut and are left out."] if cut else []
    table = implied(scaling, {gpus: ranks_on_a_host(gpus, machine) for gpus in counts}, algorithms, machine.links)
    if table.empty:
        raise TrisectError(f"{path}: no section at 2 or more GPUs moves a known payload; measure such counts")
    if (table["algorithm"] == UNKNOWN).any():
        notes.append("Note: unknown: no NCCL log says which algorithm ran, so its rate is one of the two readings.")
    shown = table.assign(off=table["off"].map("{:+.1%}".format))
    return [*shown.to_string(index=False, float_format=lambda value: f"{value:.4g}").splitlines(), *notes]


def _algorithms(run: RunLayout, gpus: int) -> tuple[dict[tuple[str, int], str], int]:
    """By section, what NCCL took for the largest all_reduce; nothing without logs. And the lines that were cut."""
    logs = sorted(run.nccl.glob("*.log"))
    if not logs or not run.collectives.exists():
        return {}, 0
    tuning, cut = read_tuning("\n".join(path.read_text(errors="replace") for path in logs))
    world = int(tuning["nranks"].max()) if len(tuning) else -1
    if world not in (-1, gpus):
        raise TrisectError(
            f"{run.nccl}: these logs are of {world} ranks, the run has {gpus}; they are from another run"
        )
    collectives = pd.read_csv(run.collectives)
    largest = collectives[collectives["op"] == "all_reduce"].groupby("section")["bytes"].max()
    found = {(str(name), gpus): algorithm_for(tuning, "all_reduce", int(size)) for name, size in largest.items()}
    return found, cut
