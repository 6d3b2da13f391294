"""What `trisect predict` says: the model's table, and its answers in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from trisect.comm import changes
from trisect.comm.model import COLUMNS, Model, Problem, of_machine, predict, problem
from trisect.comm.pace import links_of
from trisect.config import load_experiments, load_machine, load_study
from trisect.errors import TrisectError
from trisect.report.findings import HALF, PAYS, largest_count
from trisect.report.numbers import percent
from trisect.settings import Machine, nearest
from trisect.tables import TOTAL

LARGEST = 1024
"""Count up to which a prediction goes when none is asked for."""


def prediction(
    config: Path, machine_name: str, experiment: str, gpus: Sequence[int] | None = None, *, sections: bool = False
) -> str:
    """The prediction for one experiment on one machine, as text.

    Args:
        config: the config folder.
        machine_name: a file of config/machines/ that has links.
        experiment: an experiment of config/study.yaml.
        gpus: counts; None takes powers of two from the smallest that it fits on to LARGEST.
        sections: show each section too.

    Raises:
        TrisectError: a file is wrong, there is no such machine or experiment, or a count cannot be taken.
    """
    study, machine = load_study(config), load_machine(machine_name, config)
    known = study.experiments
    if experiment not in known:
        raise TrisectError(f"experiment: no {experiment!r} in config/study.yaml{nearest(experiment, known)}")
    links = links_of(machine, machine_name)
    chosen = problem(experiment, load_experiments(config)[experiment], known[experiment], study.size)
    counts = _counts(chosen, machine, gpus)
    model = of_machine(chosen, machine, links)
    table = predict(model, counts)
    beside = max((n for n in counts if n <= _has(machine)), default=counts[0])
    answers = changes.compare(model, counts, (PAYS, HALF), beside)
    return "\n".join(
        [
            f"{experiment} ({study.size} size) on {machine_name}: modelled, not measured (docs/model.md).",
            "Seconds per iteration; cost is relative to the smallest count.",
            "",
            *_table(table if sections else table[table["section"] == TOTAL], model),
            "",
            *_answers(table),
            "",
            *_what_moves_it(answers, beside, counts),
            "",
            *_notes(machine, counts, chosen),
        ]
    )


def _has(machine: Machine) -> float:
    """GPUs of the machine."""
    return math.inf if machine.nodes is None else machine.nodes * machine.gpus_per_node


def _table(shown: pd.DataFrame, model: Model) -> list[str]:
    how = [model.paces(n).algorithm if n > 1 else "-" for n in shown["gpus"]]
    columns = ["gpus", "algorithm", *(name for name in COLUMNS if name != "gpus")]
    return (
        shown.assign(algorithm=how)[columns]
        .to_string(index=False, float_format=lambda value: f"{value:.4g}")
        .splitlines()
    )


def _counts(chosen: Problem, machine: Machine, gpus: Sequence[int] | None) -> list[int]:
    if gpus is None:
        return [n for n in (2**k for k in range(LARGEST.bit_length())) if chosen.least_gpus <= n <= LARGEST]
    for n in gpus:
        if n < chosen.least_gpus:
            raise TrisectError(f"gpus: {chosen.name} does not fit on {n}; use {chosen.least_gpus} or more")
        machine.model_copy(update={"nodes": None}).check_count(n)
    return sorted(set(gpus))


def _answers(table: pd.DataFrame) -> list[str]:
    total = table[table["section"] == TOTAL]
    said = []
    for level in (PAYS, HALF):
        count = largest_count(total, level)
        where = f"up to {count} GPUs" if count else "at none of these counts"
        said.append(f"Parallel efficiency is at least {percent(level)} {where}.")
    over = total.loc[total["transfer_s"] >= total["compute_max_s"], "gpus"]
    if over.empty:
        return [*said, f"Transfer stays shorter than the slowest rank's compute up to {total['gpus'].max()} GPUs."]
    return [*said, f"Transfer takes at least as long as the slowest rank's compute from {over.min()} GPUs on."]


def _what_moves_it(answers: pd.DataFrame, beside: int, counts: Sequence[int]) -> list[str]:
    """Counts in between are interpolated, and so rounded."""
    titles = {
        "change": "what would move it",
        PAYS: f"{percent(PAYS)} up to about",
        HALF: f"{percent(HALF)} up to about",
        "crossing": "transfer below compute up to about",
        "efficiency": f"efficiency at {beside}",
    }
    shown = answers.rename(columns=titles).astype(object)
    for name in (PAYS, HALF, "crossing"):
        shown[titles[name]] = answers[name].map(
            lambda count: "none" if not count else f"{counts[-1]} or more" if count == counts[-1] else f"{count:.0f}"
        )
    shown[titles["efficiency"]] = answers["efficiency"].map(percent)
    return shown.to_string(index=False).splitlines()


def _notes(machine: Machine, counts: Sequence[int], chosen: Problem) -> list[str]:
    notes = []
    if counts[-1] > _has(machine):
        notes.append(
            f"Counts above {_has(machine)} are more than this machine has: its rates are taken to hold, and its ring,"
            " where NCCL may choose another algorithm."
        )
    if counts[-1] > chosen.tiles:
        notes.append(f"Counts above {chosen.tiles} leave GPUs without a tile: there are {chosen.tiles}.")
    return [f"Note: {note}" for note in notes]
