"""The rule `rates` and `trisect rates`: an experiment's measured transfers and NCCL logs to implied rates."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from trisect.config.machine import Machine
from trisect.errors import TrisectError
from trisect.host import write_whole
from trisect.network.byte_rules import GLOO, RING
from trisect.network.implied_rates import implied, probed, rate_notes
from trisect.network.regimes import messages, regime_notes
from trisect.pipeline.files import algorithms_of, fits_of, tuning_of
from trisect.report.text.note_words import all_in_words
from trisect.report.text.tables_text import rates_text
from trisect.results.layout import Layout, RunLayout
from trisect.results.notes import Note
from trisect.results.tables import PAIRED_COLLECTIVES, RATES, SCALING, counts_of, read_table


def rates_of(scaling: pd.DataFrame, layout: Layout, machine: Machine) -> pd.DataFrame:
    """tables.RATES of one experiment, beside the machine's rates and, where there is a results/probe/, the probed ones.

    Args:
        scaling: tables.SCALING of the experiment.
        layout: where its runs lie, whose NCCL logs are read.
        machine: what it ran on.

    Raises:
        TrisectError: a log is of another run.
    """
    experiment = str(scaling["experiment"].iloc[0])
    counts = counts_of(scaling["gpus"])
    algorithms: dict[tuple[str, int], str] = {}
    if machine.backend == GLOO:
        places = scaling[["section", "gpus"]].itertuples(index=False, name=None)
        algorithms = dict.fromkeys(((str(section), int(gpus)) for section, gpus in places), RING)
    cut: dict[int, int] = {}
    for gpus in counts:
        found, cut[gpus] = algorithms_of(layout.run(experiment, gpus), gpus)
        algorithms |= found
    table = implied(scaling, {gpus: machine.ranks_per_host(gpus) for gpus in counts}, algorithms, machine.links)
    beside = scaling[["section", "gpus", "hidden_s", "iterations", "oversubscribed"]]
    table = table.assign(
        experiment=experiment, probed_gb_per_s=probed(table, fits_of(layout)), cut_lines=table["gpus"].map(cut)
    )
    return table.merge(beside, on=["section", "gpus"], how="left")[list(RATES)]


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
    notes = [*rate_notes(table), *_regimes(layout, results.name, table["gpus"].unique())]
    return [*rates_text(table), *all_in_words(notes, machine.unit)]


def _regimes(layout: Layout, experiment: str, counts: Iterable[int]) -> list[Note]:
    """Which regime the messages of the finished runs are in, where the probe ran."""
    fits = fits_of(layout)
    if fits is None:
        return []
    runs = {int(gpus): layout.run(experiment, gpus) for gpus in counts}
    found = {gpus: messages_of(run, fits, gpus) for gpus, run in runs.items() if run.collectives.exists()}
    return [one for gpus, table in found.items() for one in regime_notes(table, gpus)]


def messages_of(run: RunLayout, fits: pd.DataFrame, gpus: int) -> pd.DataFrame:
    """regimes.MESSAGES of one run.

    Raises:
        TrisectError: its logs are of another run.
    """
    return messages(read_table(run.collectives, PAIRED_COLLECTIVES), fits, gpus, tuning_of(run, gpus)[0])


def _scaling(layout: Layout, experiment: str) -> pd.DataFrame:
    return read_table(layout.scaling(experiment), SCALING).assign(experiment=experiment)
