"""What a report is made of: the tables, records and notes of the finished runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from trisect.results.notes import Note
from trisect.results.record import PredictionRecord, RunRecord
from trisect.results.tables import PREDICTION, RATES, RunKey


@dataclass(frozen=True)
class Material:
    """Everything that the page and its figures show, but for drawings. Only `scaling` has to have rows."""

    scaling: pd.DataFrame  # tables.SCALING of all experiments, over the finished runs
    ranks: pd.DataFrame  # rank_figures.RANK_CELLS of one count per experiment
    rates: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(RATES)))  # of all experiments
    fits: pd.DataFrame | None = None  # tables.FITS; None where nothing was probed
    messages: pd.DataFrame | None = None  # regimes.MESSAGES of all runs, with experiment and gpus
    prediction: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(PREDICTION)))
    predictions: Mapping[str, PredictionRecord] = field(default_factory=dict)  # by experiment
    records: Sequence[RunRecord] = ()
    notes: Mapping[RunKey, Sequence[Note]] = field(default_factory=dict)
    missing: Mapping[RunKey, str] = field(default_factory=dict)  # runs that are not finished, with the reason

    @property
    def unit(self) -> str:
        """What is counted, in the singular: "rank" where every run used CPU ranks, else "GPU"."""
        on_cpu = bool(self.records) and all(record.device == "cpu" for record in self.records)
        return "rank" if on_cpu else "GPU"

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """By the table that the catalogue names for a figure."""
        return {"scaling": self.scaling, "ranks": self.ranks, "rates": self.rates, "prediction": self.prediction}
