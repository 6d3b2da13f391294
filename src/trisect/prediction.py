"""What a prediction says in words, and what `trisect predict` says: the model's table, and its answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from trisect.comm import changes
from trisect.comm.model import Model, Problem, of_machine, predict, problem
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
    beside = max((n for n in counts if n <= has(machine)), default=counts[0])
    return "\n".join(
        [
            f"{experiment} ({study.size} size) on {machine_name}: modelled, not measured (docs/model.md).",
            "Seconds per iteration; cost is relative to the smallest count.",
            "",
            *table_in_words(table if sections else table[table["section"] == TOTAL], model),
            "",
            *answers(table),
            "",
            *what_moves_it(model, counts, beside),
            "",
            *(f"Note: {note}" for note in limits(model, machine, counts)),
        ]
    )


def has(machine: Machine) -> float:
    """GPUs of the machine."""
    return math.inf if machine.nodes is None else machine.nodes * machine.gpus_per_node


def doublings(least: int, per_node: Callable[[int], int]) -> list[int]:
    """Powers of two from `least` to LARGEST, and whole nodes doubled, without those that fill no whole number of nodes.

    Args:
        least: the smallest.
        per_node: by count, the GPUs of a node.
    """
    powers = [2**k for k in range(LARGEST.bit_length())]
    every = {*powers, *(per_node(LARGEST) * n for n in powers), least}
    return sorted(n for n in every if least <= n <= LARGEST and n % min(n, per_node(n)) == 0)


def table_in_words(shown: pd.DataFrame, model: Model) -> list[str]:
    """The rows of a prediction, with the algorithm at each count."""
    how = [model.paces(n).algorithm if n > 1 else "-" for n in shown["gpus"]]
    columns = ["gpus", "algorithm", *(name for name in shown.columns if name != "gpus")]
    return (
        shown.assign(algorithm=how)[columns]
        .to_string(index=False, float_format=lambda value: f"{value:.4g}")
        .splitlines()
    )


def _counts(chosen: Problem, machine: Machine, gpus: Sequence[int] | None) -> list[int]:
    if gpus is None:
        return doublings(chosen.least_gpus, lambda _: machine.gpus_per_node)
    for n in gpus:
        if n < chosen.least_gpus:
            raise TrisectError(f"gpus: {chosen.name} does not fit on {n}; use {chosen.least_gpus} or more")
        machine.model_copy(update={"nodes": None}).check_count(n)
    return sorted(set(gpus))


def answers(table: pd.DataFrame, unit: str = "GPU") -> list[str]:
    """Up to which count efficiency holds, and where transfer overtakes compute, in sentences.

    Args:
        table: from `model.predict`.
        unit: what is counted, in the singular.
    """
    total = table[table["section"] == TOTAL]
    said = []
    for level in (PAYS, HALF):
        count = largest_count(total, level)
        where = f"up to {_counted(count, unit)}" if count else "at none of these counts"
        said.append(f"Parallel efficiency is at least {percent(level)} {where}.")
    over = total.loc[total["transfer_s"] >= total["compute_max_s"], "gpus"]
    if over.empty:
        most = _counted(int(total["gpus"].max()), unit)
        return [*said, f"Transfer stays shorter than the slowest rank's compute up to {most}."]
    first = _counted(int(over.min()), unit)
    return [*said, f"Transfer takes at least as long as the slowest rank's compute from {first} on."]


def _counted(count: int, unit: str) -> str:
    return f"{count} {unit}{'s' * (count != 1)}"


def what_moves_it(model: Model, counts: Sequence[int], beside: int) -> list[str]:
    """What each change does to the answers, as a table; counts in between are interpolated, and so rounded.

    Args:
        model: as for `model.predict`.
        counts: as there.
        beside: one of them, at which parallel efficiency is shown.
    """
    found = changes.compare(model, counts, (PAYS, HALF), beside)
    titles = {
        "change": "what would move it",
        PAYS: f"{percent(PAYS)} up to about",
        HALF: f"{percent(HALF)} up to about",
        "crossing": "transfer below compute up to about",
        "efficiency": f"efficiency at {beside}",
    }
    shown = found.rename(columns=titles).astype(object)
    for name in (PAYS, HALF, "crossing"):
        shown[titles[name]] = found[name].map(
            lambda count: "none" if not count else f"{counts[-1]} or more" if count == counts[-1] else f"{count:.0f}"
        )
    shown[titles["efficiency"]] = found["efficiency"].map(percent)
    return shown.to_string(index=False).splitlines()


def limits(model: Model, machine: Machine, counts: Sequence[int]) -> list[str]:
    """From which count on a prediction goes beyond the machine, and beyond the problem."""
    said = []
    if counts[-1] > has(machine):
        said.append(
            f"Counts above {has(machine)} are more than this machine has: its rates are taken to hold, and its"
            f" {model.paces(counts[-1]).algorithm}, where NCCL may choose another algorithm."
        )
    if counts[-1] > model.problem.tiles:
        said.append(f"Counts above {model.problem.tiles} leave some without a tile: there are {model.problem.tiles}.")
    return said
