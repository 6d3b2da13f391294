"""What a prediction answers: at which counts, up to which of them GPUs pay, and how far to trust that. All as notes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from trisect.analysis.findings import HALF, PAYS, largest_count
from trisect.config.machine import Machine
from trisect.errors import TrisectError
from trisect.model.what_if import what_if
from trisect.network.nccl_log import UNKNOWN_ALGORITHM
from trisect.results.notes import Note, note
from trisect.results.record import PredictionRecord
from trisect.results.tables import HELD_OUT, TOTAL, counts_of

if TYPE_CHECKING:  # the fit takes half a second to import, which `trisect predict` need not wait for
    from trisect.model.fit import Fitted, Measured
    from trisect.model.predict import Model, Problem

LARGEST = 1024
"""Count up to which a prediction goes when none is asked for."""

ERRORS_SHOWN = ("span_s", "compute_s", "transfer_s", "wait_s", "load_balance", "parallel_efficiency", "cost")
"""Whose relative error is told."""


def doublings(least: int, per_node: Callable[[int], int]) -> list[int]:
    """Powers of two from `least` to LARGEST, and whole nodes doubled, without those that fill no whole number of nodes.

    `per_node` gives the GPUs of a node by count.
    """
    powers = [2**k for k in range(LARGEST.bit_length())]
    every = {*powers, *(per_node(LARGEST) * n for n in powers), least}
    return sorted(n for n in every if least <= n <= LARGEST and n % min(n, per_node(n)) == 0)


def counts_asked(problem: Problem, machine: Machine, gpus: Sequence[int] | None) -> list[int]:
    """The counts to predict: those asked for, else `doublings`.

    Raises:
        TrisectError: a count that the problem does not fit on, or that fills no whole number of nodes.
    """
    if gpus is None:
        return doublings(problem.least_gpus, lambda _: machine.gpus_per_node)
    for n in gpus:
        if n < problem.least_gpus:
            raise TrisectError(f"gpus: {problem.name} does not fit on {n}; use {problem.least_gpus} or more")
        machine.model_copy(update={"nodes": None}).check_count(n)
    return sorted(set(gpus))


def answers(table: pd.DataFrame) -> list[Note]:
    """Up to which count efficiency holds in a prediction, and where transfer overtakes compute."""
    total = table[table["section"] == TOTAL]
    reached = {level: largest_count(total, level) for level in (PAYS, HALF)}
    over = total.loc[total["transfer_s"] >= total["compute_max_s"], "gpus"]
    return [
        *(
            note("efficiency_holds", level=level, count=count) if count else note("efficiency_never", level=level)
            for level, count in reached.items()
        ),
        note("transfer_below", count=int(total["gpus"].max()))
        if over.empty
        else note("transfer_from", count=int(over.min())),
    ]


def limits(model: Model, machine: Machine, counts: Sequence[int]) -> list[Note]:
    """From which count on a prediction goes beyond the machine, and beyond the problem."""
    found = []
    if counts[-1] > machine.gpus:
        found.append(note("beyond_machine", has=int(machine.gpus), algorithm=model.all_reduce(counts[-1]).algorithm))
    if counts[-1] > model.problem.tiles:
        found.append(note("without_tile", tiles=model.problem.tiles))
    return found


def relative_errors(table: pd.DataFrame) -> list[Note]:
    """The relative errors of a prediction (tables.PREDICTION of one experiment) at each measured count."""
    total = table[table["section"] == TOTAL]
    found = []
    for row in total[total["measured_span_s"].notna()].to_dict("records"):
        names = [name for name in ERRORS_SHOWN if row["gpus"] > 1 or name not in ("transfer_s", "wait_s")]
        errors = [{"metric": name, "error": float(row[f"error_{name}"])} for name in names]
        about = {"role": row["role"], "gpus": int(row["gpus"]), "oversubscribed": bool(row["oversubscribed"])}
        found.append(note("relative_errors", **about, errors=errors))
    return found if (total["role"] == HELD_OUT).any() else [*found, note("none_held_out")]


def caveats_of_fit(
    table: pd.DataFrame, runs: Mapping[int, Measured], fitted: Fitted, machine: Machine, chosen: Sequence[int]
) -> list[Note]:
    """What a prediction (tables.PREDICTION) from the `chosen` ones of the measured counts does not carry."""
    counts = counts_of(table["gpus"])
    found = limits(fitted.model, machine, counts)
    shared = [n for n in chosen if runs[n].table["oversubscribed"].any()]
    found += [note("fitted_oversubscribed", counts=list(shared))] if shared else []
    found += [note("own_cores")] if machine.shares_cores(counts[-1]) else []
    across = any(n > run.per_node for n, run in runs.items() if n in chosen)
    if fitted.lines and not across and counts[-1] > machine.ranks_per_host(counts[-1]):
        found.append(note("one_node_fitted"))
    unknown = [line.gpus for line in fitted.lines if runs[line.gpus].algorithm == UNKNOWN_ALGORITHM]
    found += [note("assumed_ring", counts=list(unknown))] if unknown and machine.backend == "nccl" else []
    return [*found, _late(runs, chosen)]


def _late(runs: Mapping[int, Measured], chosen: Sequence[int]) -> Note:
    """How much of the measured wait is of a kind that the model does not have."""
    totals = [runs[n].table.set_index("section").loc[TOTAL] for n in chosen if n > 1]
    known = [row for row in totals if row["wait_s"] > 0 and pd.notna(row["wait_late_start_s"])]
    if not known:
        return note("late_start_unknown")
    late, wait = pd.DataFrame(known)[["wait_late_start_s", "wait_s"]].clip(lower=0).sum()
    return note("late_start_share", share=float(late / wait))


def rates_of_links(name: str, machine: Machine) -> Note:
    """Whose rates and jitter a prediction uses: those of the machine's file, and what the file says of them."""
    source = machine.links.source if machine.links else ""
    return note("rates_of_links", machine=name, source=source, jitter=machine.compute_jitter)


def prediction_record(
    model: Model, machine: Machine, table: pd.DataFrame, /, *, measured: int, **about: Any
) -> PredictionRecord:
    """What a prediction, `table`, answers.

    Args:
        model: what predicts.
        machine: on which.
        table: from `predict`.
        measured: the count at which efficiencies are shown where the machine's own size is not known.
        about: what else the record holds: size, machine (its name), fitted, errors and notes.
    """
    counts = counts_of(table["gpus"])
    shown_at = max((n for n in counts if n <= machine.gpus < math.inf), default=measured)
    return PredictionRecord(
        experiment=model.problem.name,
        unit=machine.unit,
        algorithms={n: model.all_reduce(n).algorithm for n in counts if n > 1},
        shown_at=shown_at,
        answers=answers(table),
        what_if=what_if(model, counts, shown_at),
        **about,
    )
