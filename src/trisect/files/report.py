"""From the results folder to the report, whether or not every run of the sweep stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from trisect.analysis import scaling
from trisect.config import Sweep
from trisect.errors import TrisectError
from trisect.files.comparison import compare_folders
from trisect.host import write_whole
from trisect.layout import Layout, RunLayout
from trisect.record import RunRecord
from trisect.report import figures, heat, page
from trisect.tables import SCALING


@dataclass(frozen=True)
class Standing:
    """What there is of a sweep."""

    scaling: pd.DataFrame  # tables.SCALING of all experiments, over the counts that stand
    ranks: pd.DataFrame  # heat.RANKS of one count per experiment
    records: list[RunRecord]
    missing: dict[tuple[str, int], str]  # the runs that do not stand, with the reason

    def table_of(self, figure: str) -> pd.DataFrame:
        """The table that a figure is drawn from."""
        return self.ranks if figure in figures.RANK_FIGURES else self.scaling


def standing(sweep: Sweep, layout: Layout) -> Standing:
    """Read every run of the sweep whose decomposition stands.

    Raises:
        TrisectError: none does, or a file is damaged.
    """
    tables, records, missing = [], [], {}
    for experiment in sweep.settings.experiments:
        runs = {}
        for gpus in sweep.counts(experiment):
            files = layout.run(experiment, gpus)
            if all(path.exists() for path in (files.decomposition, files.ranks, files.record)):
                runs[gpus] = pd.read_csv(files.decomposition), pd.read_parquet(files.iterations)
                records.append(RunRecord.read(files.record))
            else:
                missing[experiment, gpus] = reason(files)
        if runs:
            tables.append(scaling(runs)[SCALING])
    if not tables:
        raise TrisectError(f"{layout.root}: no run of the sweep stands; see the logs of the runs")
    table = pd.concat(tables, ignore_index=True)
    return Standing(table, ranks_of(layout, table), records, missing)


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
    drawn = drawings if drawings is not None else _drawn(found, captions)
    html = page.render(
        found.scaling,
        found.records,
        found.missing,
        drawn,
        captions,
        results=layout.root,
        comparison=comparison,
        timelines=_timelines(layout, found.scaling),
    )
    write_whole(layout.report, html)
    return found


def _drawn(found: Standing, names: Iterable[str]) -> dict[str, str]:
    return {name: figures.draw(name, found.table_of(name)) for name in names if name in figures.EVERY}


def _timelines(layout: Layout, scaling: pd.DataFrame) -> dict[tuple[str, int], str]:
    """The drawn timelines that stand, of the runs that are shown rank by rank."""
    drawings = {run: layout.run(*run).timeline_drawing for run in heat.chosen_counts(scaling).items()}
    return {run: path.read_text() for run, path in drawings.items() if path.exists()}
