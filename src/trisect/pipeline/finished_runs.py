"""The finished runs of a sweep, whether or not all are, as what the report is made of."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from trisect.analysis.baseline import largest_fair_counts
from trisect.config.machine import Machine
from trisect.config.plan import Sweep
from trisect.errors import TrisectError, kept_error
from trisect.network.regimes import MESSAGES
from trisect.pipeline.files import fits_of
from trisect.pipeline.rates import messages_of, rates_of
from trisect.pipeline.scaling import scaling_of
from trisect.report.figures.rank_figures import RANK_CELLS
from trisect.report.figures.reconstruction import PICTURE_TITLES, Pictures
from trisect.report.material import Material
from trisect.report.sections.quality import of_experiments
from trisect.report.text.note_words import in_words
from trisect.results.layout import Layout, RunLayout
from trisect.results.notes import Note, note, read_notes
from trisect.results.record import PredictionRecord, RunRecord
from trisect.results.tables import PREDICTION, RANKS, RATES, RUN_DECOMPOSITION, RunKey, read_table


def finished_runs(sweep: Sweep, layout: Layout) -> Material:
    """Read every run of the sweep that is finished.

    Raises:
        TrisectError: none is, or a file is damaged or of another version.
    """
    tables, records, notes, missing = [], [], {}, {}
    for experiment in sweep.settings.experiments:
        done = []
        for gpus in sweep.counts(experiment):
            files = layout.run(experiment, gpus)
            if all(path.exists() for path in (files.decomposition, files.ranks, files.notes, files.record)):
                done.append(files)
                records.append(RunRecord.read(files.record))
                notes[experiment, gpus] = read_notes(files.notes)
            else:
                missing[experiment, gpus] = reason(files)
        tables += [scaling_of(done)] if done else []
    for run, said in _other_arithmetic(records).items():
        notes[run] = [said, *notes[run]]
    if not tables:
        raise TrisectError(f"{layout.root}: no run of the sweep is finished; see the logs of the runs")
    scaling = pd.concat(tables, ignore_index=True)
    whole = [name for name in sweep.settings.experiments if name not in {experiment for experiment, _ in missing}]
    table, predictions = predictions_of(layout, whole)
    return Material(
        scaling=scaling,
        ranks=ranks_of(layout, scaling),
        **movement_of(layout, scaling, sweep.machine),
        prediction=table,
        predictions=predictions,
        records=records,
        notes=notes,
        missing=missing,
    )


def _other_arithmetic(records: Sequence[RunRecord]) -> dict[RunKey, Note]:
    """By run whose precision or arithmetic is not that of its experiment's smallest count: that it does not compare."""
    found = {}
    for record in records:
        base = min((one for one in records if one.experiment == record.experiment), key=lambda one: one.gpus)
        mine, its = ({"precision": one.precision} | one.arithmetic for one in (record, base))
        off = sorted(name for name in {*mine, *its} if mine.get(name) != its.get(name))
        if off:
            named = [f"{name} {str(mine.get(name, 'unknown')).lower()}" for name in off]
            found[record.experiment, record.gpus] = note(
                "other_arithmetic", gpus=record.gpus, base=base.gpus, off=named
            )
    return found


def ranks_of(layout: Layout, scaling: pd.DataFrame) -> pd.DataFrame:
    """rank_figures.RANK_CELLS of each experiment in tables.SCALING, at the count that shows its ranks best."""
    shared = scaling.groupby(["experiment", "gpus"])["oversubscribed"].first()
    order = {section: place for place, section in enumerate(scaling["section"].unique())}
    tables = [
        read_table(layout.run(name, gpus).ranks, RANKS)
        .sort_values("section", key=lambda names: names.map(order), kind="stable")
        .assign(experiment=name, gpus=gpus, oversubscribed=bool(shared[name, gpus]))
        for name, gpus in largest_fair_counts(scaling).items()
    ]
    return pd.concat(tables, ignore_index=True)[RANK_CELLS]


def movement_of(layout: Layout, scaling: pd.DataFrame, machine: Machine) -> dict[str, Any]:
    """Material's `rates` of every experiment, and where the probe ran its `fits`, and the runs' `messages` beside them.

    Raises:
        TrisectError: a log is of another run, or the probe's table is damaged.
    """
    rates = [rates_of(rows, layout, machine) for _, rows in scaling.groupby("experiment", sort=False)]
    fits = fits_of(layout)
    if fits is None:
        return {"rates": stacked(rates, RATES)}
    counts = scaling[["experiment", "gpus"]].drop_duplicates().itertuples(index=False, name=None)
    found = [
        messages_of(layout.run(name, gpus), fits, gpus).assign(experiment=name, gpus=gpus) for name, gpus in counts
    ]
    messages = stacked(found, ["experiment", "gpus", *MESSAGES])
    return {"rates": stacked(rates, RATES), "fits": fits, "messages": messages}


def predictions_of(layout: Layout, names: Iterable[str]) -> tuple[pd.DataFrame, Mapping[str, PredictionRecord]]:
    """The predictions that there are: their tables below each other, and what they answer, by experiment."""
    there = [name for name in names if layout.prediction(name).exists() and layout.prediction_record(name).exists()]
    records = {name: PredictionRecord.read(layout.prediction_record(name)) for name in there}
    return stacked([read_table(layout.prediction(name), PREDICTION) for name in there], PREDICTION), records


def pictures_of(layout: Layout, records: Iterable[RunRecord]) -> dict[RunKey, Pictures]:
    """Truth, one measurement and result of the runs whose reconstruction is shown, where there are pictures of it.

    Raises:
        TrisectError: a file holds something else.
    """
    shown = [(name, max(by_count)) for name, by_count in of_experiments(records).items()]
    paths = {run: layout.run(*run).reconstruction for run in shown}
    return {run: _read_pictures(path) for run, path in paths.items() if path.exists()}


def _read_pictures(path: Path) -> Pictures:
    try:
        with np.load(path) as arrays:
            pictures = {name: arrays[name] for name in PICTURE_TITLES}
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        reason = " ".join(str(error).split())[:200]
        raise TrisectError(f"{path}: not readable as pictures ({reason}); measure this count again") from None
    for name, picture in pictures.items():
        grey_or_colour = picture.ndim == 2 or picture.shape[2:] == (3,)
        if picture.dtype != np.uint8 or not grey_or_colour or not picture.size:
            raise TrisectError(f"{path}: {name} is no picture of bytes; measure this count again")
    return pictures


def stacked(tables: Sequence[pd.DataFrame], columns: Iterable[str]) -> pd.DataFrame:
    """Tables below each other; with `columns` and no row where none has one."""
    some = [table for table in tables if not table.empty]
    return pd.concat(some, ignore_index=True) if some else pd.DataFrame(columns=list(columns))


def reason(files: RunLayout) -> str:
    """Why a run is not finished: what the rule that failed last said, or that it was not run."""
    said = (kept_error(files.logs / f"{rule}.log") for rule in ("decompose", "benchmark"))
    old = files.decomposition.exists() and files.record.exists()
    rest = note("other_version", remake=RUN_DECOMPOSITION.remake) if old else note("not_run")
    return next(filter(None, said), in_words(rest))
