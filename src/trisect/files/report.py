"""From the results folder to the report, whether or not every run of the sweep stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from trisect.analysis import scaling
from trisect.comm.held_out import PREDICTION
from trisect.comm.rates import TABLE
from trisect.comm.regimes import MESSAGES
from trisect.config import Sweep
from trisect.errors import TrisectError
from trisect.files.comparison import compare_folders
from trisect.files.rates import fits_of, messages_of, rates_of
from trisect.host import write_whole
from trisect.layout import Layout, RunLayout
from trisect.record import RunRecord
from trisect.report import figures, heat, page, runs
from trisect.report.catalogue import CATALOGUE, Kind
from trisect.report.forecasts import Predictions
from trisect.report.transfers import Movement
from trisect.settings import Machine
from trisect.tables import SCALING


@dataclass(frozen=True)
class Standing:
    """What there is of a sweep."""

    scaling: pd.DataFrame  # tables.SCALING of all experiments, over the counts that stand
    ranks: pd.DataFrame  # heat.RANKS of one count per experiment
    movement: Movement
    predictions: Predictions
    records: list[RunRecord]
    missing: dict[tuple[str, int], str]  # the runs that do not stand, with the reason

    @property
    def unit(self) -> str:
        """What is counted, in the singular."""
        return runs.unit_of(self.records)

    def drawn(self, names: Iterable[str]) -> dict[str, str]:
        """Those of the named figures that there are, as SVG."""
        tables: dict[Kind, pd.DataFrame] = {
            "scaling": self.scaling,
            "ranks": self.ranks,
            "rates": self.movement.rates,
            "prediction": self.predictions.table,
        }
        return {
            name: figures.draw(name, tables[CATALOGUE[name].table], self.unit) for name in names if name in CATALOGUE
        }


def standing(sweep: Sweep, layout: Layout) -> Standing:
    """Read every run of the sweep whose decomposition stands.

    Raises:
        TrisectError: none does, or a file is damaged.
    """
    tables, records, missing = [], [], {}
    for experiment in sweep.settings.experiments:
        done = {}
        for gpus in sweep.counts(experiment):
            files = layout.run(experiment, gpus)
            if all(path.exists() for path in (files.decomposition, files.ranks, files.record)):
                done[gpus] = pd.read_csv(files.decomposition), pd.read_parquet(files.iterations)
                records.append(RunRecord.read(files.record))
            else:
                missing[experiment, gpus] = reason(files)
        if done:
            tables.append(scaling(done)[SCALING])
    if not tables:
        raise TrisectError(f"{layout.root}: no run of the sweep stands; see the logs of the runs")
    table = pd.concat(tables, ignore_index=True)
    incomplete = {experiment for experiment, _ in missing}
    whole = [name for name in sweep.settings.experiments if name not in incomplete]
    return Standing(
        table,
        ranks_of(layout, table),
        movement_of(layout, table, sweep.machine),
        predictions_of(layout, whole),
        records,
        missing,
    )


def ranks_of(layout: Layout, scaling: pd.DataFrame) -> pd.DataFrame:
    """Per rank, iteration and section, the count of every experiment that shows its ranks best: heat.RANKS.

    Args:
        layout: where the runs lie.
        scaling: tables.SCALING of all experiments.
    """
    shared = scaling.groupby(["experiment", "gpus"])["oversubscribed"].first()
    order = {section: place for place, section in enumerate(scaling["section"].unique())}
    tables = [
        pd.read_parquet(layout.run(name, gpus).ranks)
        .sort_values("section", key=lambda names: names.map(order), kind="stable")
        .assign(experiment=name, gpus=gpus, oversubscribed=bool(shared[name, gpus]))
        for name, gpus in heat.chosen_counts(scaling).items()
    ]
    return pd.concat(tables, ignore_index=True)[heat.RANKS]


def movement_of(layout: Layout, scaling: pd.DataFrame, machine: Machine) -> Movement:
    """Implied rates of every experiment, and where the probe ran what it found, and the runs' messages beside that.

    Raises:
        TrisectError: a log is of another run, or the probe's table is damaged.
    """
    rates = [rates_of(rows, layout, machine) for _, rows in scaling.groupby("experiment", sort=False)]
    fits = fits_of(layout)
    if fits is None:
        return Movement(_stacked(rates, TABLE))
    counts = scaling[["experiment", "gpus"]].drop_duplicates().itertuples(index=False, name=None)
    found = [
        messages_of(layout.run(name, gpus), fits, gpus).assign(experiment=name, gpus=gpus) for name, gpus in counts
    ]
    return Movement(_stacked(rates, TABLE), fits, _stacked(found, ["experiment", "gpus", *MESSAGES]))


def predictions_of(layout: Layout, experiments: Iterable[str]) -> Predictions:
    """The predictions that stand."""
    paths = {name: layout.prediction(name) for name in experiments if layout.prediction(name).exists()}
    words = {name: layout.prediction_words(name) for name in paths}
    return Predictions(
        _stacked([pd.read_csv(path) for path in paths.values()], PREDICTION),
        {name: path.read_text() for name, path in words.items() if path.exists()},
    )


def figure_table(figure: str, layout: Layout, experiments: Sequence[str]) -> pd.DataFrame:
    """The table that a figure of the catalogue is drawn from, out of the files of a whole sweep."""
    kind = CATALOGUE[figure].table
    if kind == "prediction":
        return predictions_of(layout, experiments).table
    if kind == "rates":
        return _stacked([pd.read_csv(layout.rates(name)) for name in experiments], TABLE)
    scaling = _stacked([pd.read_csv(layout.scaling(name)) for name in experiments], SCALING)
    return ranks_of(layout, scaling) if kind == "ranks" else scaling


def _stacked(tables: Sequence[pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    """Tables below each other; with `columns` and no row where none has one."""
    some = [table for table in tables if not table.empty]
    return pd.concat(some, ignore_index=True) if some else pd.DataFrame(columns=list(columns))


def reason(files: RunLayout) -> str:
    """Why a run does not stand: the last complaint in its logs, or that it was not run."""
    for log in (files.logs / "decompose.log", files.logs / "benchmark.log"):
        complaints = [line for line in _lines(log) if line.startswith("trisect: ")]
        if complaints:
            return complaints[-1].removeprefix("trisect: ")
    return "not run, or ended from outside"


def _lines(log: Path) -> list[str]:
    return log.read_text(errors="replace").splitlines() if log.exists() else []


def write_report(
    sweep: Sweep, layout: Layout, captions: Mapping[str, str], drawings: Mapping[str, str] | None = None
) -> Standing:
    """Write the report over what stands, whole or not at all.

    Args:
        captions: text below each figure, by the figure's name; that of the timelines under "timeline".
        drawings: the figures as SVG, by name; None draws them.

    Raises:
        TrisectError: as for `standing`, and for `comparison.compare_folders` where the settings name `against`.
    """
    found = standing(sweep, layout)
    against = sweep.settings.against
    comparison = compare_folders(Path(against), layout.root) if against else None
    drawn = drawings if drawings is not None else found.drawn(captions)
    html = page.render(
        found.scaling,
        found.records,
        found.missing,
        drawn,
        captions,
        results=layout.root,
        comparison=comparison,
        timelines=_timelines(layout, found.scaling),
        movement=found.movement,
        predictions=found.predictions,
    )
    write_whole(layout.report, html)
    return found


def _timelines(layout: Layout, scaling: pd.DataFrame) -> dict[tuple[str, int], str]:
    """The drawn timelines that stand, of the runs that are shown rank by rank."""
    drawings = {run: layout.run(*run).timeline_drawing for run in heat.chosen_counts(scaling).items()}
    return {run: path.read_text() for run, path in drawings.items() if path.exists()}
