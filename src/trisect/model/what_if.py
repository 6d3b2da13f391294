"""What would move the count up to which GPUs pay: the same model with one thing changed."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from trisect.analysis.findings import HALF, PAYS
from trisect.config.study_settings import Work
from trisect.model.allreduce_cost import AllReduceCost
from trisect.model.predict import Model, predict
from trisect.results.record import Change
from trisect.results.tables import TOTAL

FINER = 8
"""How many times finer the operators are cut."""

OVERLAP = "overlap"


def _more_compute(model: Model) -> Model:
    return _worked(
        model, lambda work: {key: 2 * getattr(work, key) for key in ("tiles_s", "operators_s", "repeated_s")}
    )


def _finer_operators(model: Model) -> Model:
    return replace(model, problem=replace(model.problem, operators=FINER * model.problem.operators))


def _half_payload(model: Model) -> Model:
    halved = _worked(model, lambda work: {"other_bytes": work.other_bytes // 2})
    return replace(halved, problem=replace(halved.problem, image_bytes=model.problem.image_bytes // 2))


def _faster_network(model: Model) -> Model:
    def faster(gpus: int) -> AllReduceCost:
        all_reduce = model.all_reduce(gpus)
        doubled = {name: 2 * getattr(all_reduce, name) for name in ("inside_gb_per_s", "between_gb_per_s")}
        return replace(all_reduce, **doubled)

    return replace(model, all_reduce=faster)


def _worked(model: Model, update: Callable[[Work], dict[str, float]]) -> Model:
    """The model with each section's work updated."""
    sections = {name: work.model_copy(update=update(work)) for name, work in model.problem.sections.items()}
    return replace(model, problem=replace(model.problem, sections=sections))


CHANGES: dict[str, Callable[[Model], Model]] = {
    "as_is": lambda model: model,
    "more_compute": _more_compute,
    "finer_operators": _finer_operators,
    "half_payload": _half_payload,
    "faster_network": _faster_network,
}
"""By kind, worded as `change_...` in report/text/notes.yaml. Repeated work and each step's latency stay."""


def overlapped(table: pd.DataFrame) -> pd.DataFrame:
    """A prediction in which each section's transfer runs under its slowest rank's compute as far as it fits.

    The most that overlap can give: span = compute + wait + max(0, transfer - compute_max), section by section.
    """
    sections = table[table["section"] != TOTAL]
    exposed = (sections["transfer_s"] - sections["compute_max_s"]).clip(lower=0)
    spans = (sections["compute_s"] + sections["wait_s"] + exposed).groupby(sections["gpus"]).sum()
    total = table[table["section"] == TOTAL].set_index("gpus")
    shown = total.assign(transfer_s=exposed.groupby(sections["gpus"]).sum(), span_s=spans)
    return shown.assign(parallel_efficiency=shown["compute_s"] / spans).reset_index()


def reach(table: pd.DataFrame, level: float) -> float:
    """Up to about which count parallel efficiency is at least `level`; 0 where no count of the table reaches it.

    Between the last count that does and the next, efficiency is taken as a straight line over the count's logarithm.
    """
    return _last(table, lambda total: total["parallel_efficiency"] - level)


def crossing(table: pd.DataFrame) -> float:
    """Up to about which count transfer stays below the slowest rank's compute, interpolated as by `reach`."""
    return _last(table, lambda total: 1 - total["transfer_s"] / total["compute_max_s"])


def _last(table: pd.DataFrame, lead_of: Callable[[pd.DataFrame], pd.Series]) -> float:
    """Up to about which count `lead_of` the rows TOTAL is at least 0."""
    total = table[table["section"] == TOTAL].sort_values("gpus")
    counts, lead = total["gpus"].to_numpy(), lead_of(total).to_numpy()
    positive = np.flatnonzero(lead >= 0)
    if not positive.size:
        return 0.0
    at = positive[-1]
    if at == len(counts) - 1:
        return float(counts[at])
    share = lead[at] / (lead[at] - lead[at + 1])
    return float(counts[at] * (counts[at + 1] / counts[at]) ** share)


def what_if(model: Model, counts: Sequence[int], shown: int) -> list[Change]:
    """Each of CHANGES and OVERLAP: what it does to the answers; efficiency at `shown`, which is one of `counts`."""
    tables = {kind: predict(change(model), counts, iterations=30) for kind, change in CHANGES.items()}
    tables[OVERLAP] = overlapped(next(iter(tables.values())))
    rows = []
    for kind, table in tables.items():
        efficiency = table[table["section"] == TOTAL].set_index("gpus")["parallel_efficiency"]
        reached = {"pays": reach(table, PAYS), "half": reach(table, HALF), "crossing": crossing(table)}
        rows.append(Change(change=kind, **reached, efficiency=float(efficiency[shown])))
    return rows
