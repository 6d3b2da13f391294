"""From an experiment's results folder and its NCCL logs to implied rates: the table, rates.csv, `trisect rates`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from trisect.comm.bytes import GLOO, RING
from trisect.comm.nccl_log import algorithm_for
from trisect.comm.rates import TABLE, implied, probed
from trisect.comm.regimes import messages
from trisect.errors import TrisectError
from trisect.files.nccl import tuning_of
from trisect.host import write_whole
from trisect.layout import Layout, RunLayout
from trisect.outlook import ranks_on_a_host
from trisect.report import regimes
from trisect.report.rates import sentences
from trisect.settings import Machine


def rates_of(scaling: pd.DataFrame, layout: Layout, machine: Machine) -> pd.DataFrame:
    """comm.rates.TABLE of one experiment, beside the machine's rates and, where results/probe/ stands, the probed ones.

    Args:
        scaling: tables.SCALING of the experiment.
        layout: where its runs lie, whose NCCL logs are read.
        machine: what it ran on.

    Raises:
        TrisectError: a log is of another run.
    """
    experiment = str(scaling["experiment"].iloc[0])
    counts = sorted(int(n) for n in scaling["gpus"].unique())
    algorithms: dict[tuple[str, int], str] = {}
    if machine.backend == GLOO:
        places = scaling[["section", "gpus"]].itertuples(index=False, name=None)
        algorithms = dict.fromkeys(((str(section), int(gpus)) for section, gpus in places), RING)
    cut: dict[int, int] = {}
    for gpus in counts:
        found, cut[gpus] = algorithms_of(layout.run(experiment, gpus), gpus)
        algorithms |= found
    table = implied(scaling, {gpus: ranks_on_a_host(gpus, machine) for gpus in counts}, algorithms, machine.links)
    beside = scaling[["section", "gpus", "hidden_s", "iterations", "oversubscribed"]]
    table = table.assign(
        experiment=experiment, probed_gb_per_s=probed(table, fits_of(layout)), cut_lines=table["gpus"].map(cut)
    )
    return table.merge(beside, on=["section", "gpus"], how="left")[list(TABLE)]


def write_rates(layout: Layout, experiment: str, machine: Machine) -> pd.DataFrame:
    """Write rates.csv of one experiment, without a row where nothing moves a known payload; returns the table.

    Raises:
        TrisectError: there is no scaling.csv, or as `rates_of`.
    """
    table = rates_of(_scaling(layout, experiment), layout, machine)
    write_whole(layout.rates(experiment), table.to_csv(index=False))
    return table


def rates_in_words(results: Path, machine: Machine) -> list[str]:
    """The table of implied rates, and what to know about it, as lines.

    Args:
        results: an experiment's folder, with scaling.csv and its runs.
        machine: what it ran on.

    Raises:
        TrisectError: as `write_rates`, or nothing in the table moves known bytes.
    """
    layout = Layout(results.parent)
    table = rates_of(_scaling(layout, results.name), layout, machine)
    if table.empty:
        path = layout.scaling(results.name)
        raise TrisectError(f"{path}: no section at 2 or more GPUs moves a known payload; measure such counts")
    unknown = [name for name in ("machine_gb_per_s", "probed_gb_per_s") if table[name].isna().all()]
    hidden = ["experiment", "hidden_s", "iterations", "oversubscribed", "cut_lines", *unknown]
    shown = table.assign(off=table["off"].map("{:+.1%}".format)).drop(columns=hidden)
    lines = shown.to_string(index=False, float_format=lambda value: f"{value:.4g}").splitlines()
    return [*lines, *sentences(table), *_regimes(layout, results.name, table["gpus"].unique())]


def _regimes(layout: Layout, experiment: str, counts: Iterable[int]) -> list[str]:
    """Which regime the messages of the runs that stand are in, where the probe ran."""
    fits = fits_of(layout)
    if fits is None:
        return []
    runs = {int(gpus): layout.run(experiment, gpus) for gpus in counts}
    found = {gpus: messages_of(run, fits, gpus) for gpus, run in runs.items() if run.collectives.exists()}
    return [sentence for gpus, table in found.items() for sentence in regimes.sentences(table, gpus)]


def messages_of(run: RunLayout, fits: pd.DataFrame, gpus: int) -> pd.DataFrame:
    """comm.regimes.MESSAGES of one run.

    Raises:
        TrisectError: its logs are of another run.
    """
    return messages(pd.read_csv(run.collectives), fits, gpus, tuning_of(run, gpus)[0])


def _scaling(layout: Layout, experiment: str) -> pd.DataFrame:
    return _table(layout.scaling(experiment), "run the sweep").assign(experiment=experiment)


def _table(path: Path, remedy: str) -> pd.DataFrame:
    try:
        return pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise TrisectError(f"{path}: not readable as a table ({' '.join(str(error).split())}); {remedy}") from None


def fits_of(layout: Layout) -> pd.DataFrame | None:
    """What the probe found, or None where it did not run.

    Raises:
        TrisectError: its table is damaged.
    """
    return _table(layout.fits, "run snakemake probe again") if layout.fits.exists() else None


def algorithms_of(run: RunLayout, gpus: int) -> tuple[dict[tuple[str, int], str], int]:
    """By section and count, what NCCL took for the largest all_reduce, none without logs; and the lines that were cut.

    Raises:
        TrisectError: the logs are of another run.
    """
    tuning, cut = tuning_of(run, gpus)
    if tuning is None or not run.collectives.exists():
        return {}, 0
    collectives = pd.read_csv(run.collectives)
    largest = collectives[collectives["op"] == "all_reduce"].groupby("section")["bytes"].max()
    found = {(str(name), gpus): algorithm_for(tuning, "all_reduce", int(size)) for name, size in largest.items()}
    return found, cut
