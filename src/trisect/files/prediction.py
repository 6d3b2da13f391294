"""What `snakemake predict` does: an experiment's measured counts to prediction.csv, and its answers in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd

from trisect.comm.fit import Fitted, Measured, counts_to_fit, fit
from trisect.comm.held_out import FITTED, HELD_OUT, QUANTITIES, beside
from trisect.comm.model import outline, predict
from trisect.comm.nccl_log import UNKNOWN
from trisect.comm.pace import Paces, lines_of, of_lines, of_links
from trisect.config import Sweep
from trisect.errors import TrisectError
from trisect.files.decomposition import write_all
from trisect.files.rates import algorithms_of, fits_of
from trisect.layout import Layout, RunLayout
from trisect.outlook import ranks_on_a_host, shares_cores
from trisect.prediction import answers, doublings, has, limits, table_in_words, what_moves_it
from trisect.report.numbers import digits, listed, percent, seconds, signed_percent
from trisect.settings import Machine
from trisect.tables import TOTAL

SHOWN = ("span_s", "compute_s", "transfer_s", "wait_s", "load_balance", "parallel_efficiency", "cost")
"""Whose error is said in words."""


@dataclass(frozen=True)
class Rates:
    """What all_reduces go at, and where that comes from."""

    paces: Paces | None  # None: to be fitted to the measured transfers
    source: str


def write_prediction(sweep: Sweep, layout: Layout, experiment: str) -> list[str]:
    """Fit some measured counts of one experiment and predict all; write prediction.csv and prediction.txt.

    Args:
        sweep: says which counts are measured, and which of them are fitted.
        layout: with the decomposition of each of these counts, and the probe's fits where it ran.
        experiment: one of the sweep's.

    Returns:
        What prediction.txt says, as lines.

    Raises:
        TrisectError: a run is missing or damaged, or nothing gives a rate.
    """
    machine = sweep.machine
    runs = {n: read_run(layout.run(experiment, n), n, ranks_on_a_host(n, machine)) for n in sweep.counts(experiment)}
    shared = {n: bool(run.table["oversubscribed"].any()) for n, run in runs.items()}
    chosen = counts_to_fit(shared, sweep.settings.predict.fit)
    rates = rates_of(machine, sweep.settings.machine, fits_of(layout))
    problem = outline(experiment, sweep.experiments[experiment], sweep.settings.size)
    host = partial(ranks_on_a_host, machine=machine)
    fitted = fit(problem, [runs[n] for n in chosen], host, paces=rates.paces, jitter=machine.compute_jitter or None)
    modelled = predict(fitted.model, sorted({*runs, *doublings(min(runs), host)}))
    table = beside(experiment, modelled, {n: run.table for n, run in runs.items()}, chosen)
    words = [
        f"{experiment} ({sweep.settings.size} size) on {sweep.settings.machine}: modelled from what was measured at"
        f" {listed([str(n) for n in chosen])} (docs/model.md).",
        *_in_words(table, fitted, machine),
        *(
            f"Note: {note}"
            for note in [rates.source, *_doubts(table, runs, fitted, machine), *fitted.notes, *_paces(fitted)]
        ),
    ]
    write_all(
        {
            layout.prediction(experiment): lambda path: table.to_csv(path, index=False),
            layout.prediction_words(experiment): lambda path: path.write_text("\n".join(words) + "\n"),
        },
        layout.prediction(experiment).parent,
    )
    return words


def read_run(files: RunLayout, gpus: int, per_node: int) -> Measured:
    """One run as a fit takes it.

    Args:
        files: of the run, with its decomposition.
        gpus: its ranks.
        per_node: how many of them a node has.

    Raises:
        TrisectError: its decomposition is missing, damaged or of another count, or its NCCL logs are of another run.
    """
    try:
        table, collectives = pd.read_csv(files.decomposition), pd.read_csv(files.collectives)
        ranks = pd.read_parquet(files.ranks)
    except FileNotFoundError as error:
        raise TrisectError(f"{error.filename}: no such file; measure {gpus} before a prediction from it") from None
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise TrisectError(f"{files.folder}: its decomposition is damaged ({reason}); run it again") from None
    if set(table["gpus"]) != {gpus}:
        raise TrisectError(f"{files.decomposition}: is not of {gpus} GPUs; run it again")
    named = {how for how in algorithms_of(files, gpus)[0].values() if how != UNKNOWN}
    return Measured(gpus, per_node, table, ranks, collectives, named.pop() if len(named) == 1 else UNKNOWN)


def rates_of(machine: Machine, name: str, fits: pd.DataFrame | None) -> Rates:
    """The machine's links, else the probe's fits, else none yet.

    Args:
        machine: which may have links.
        name: of its file.
        fits: comm.alpha_beta.FITS; None where nothing was probed.
    """
    if machine.links is not None:
        paces = of_links(machine.links, machine.gpus_per_node)
        return Rates(paces, f"Rates are the links in config/machines/{name}.yaml.")
    lines = [] if fits is None else lines_of(fits)
    if fits is not None and lines:
        counts = listed([str(line.gpus) for line in lines])
        shared = fits.loc[fits["gpus"].isin([line.gpus for line in lines]), "oversubscribed"].any()
        flag = " (its ranks shared cores)" if shared else ""
        source = f"Rates are the probe's, at {counts}{flag}: at each count those of the nearest that is not larger."
        return Rates(of_lines(lines, partial(ranks_on_a_host, machine=machine)), source)
    return Rates(None, "Rates are those that the transfers at the fitted counts imply, kept at all others.")


def _in_words(table: pd.DataFrame, fitted: Fitted, machine: Machine) -> list[str]:
    """The table, the answers, what would move them, and what was held out, a blank line before each."""
    total = table[table["section"] == TOTAL]
    counts = [int(n) for n in total["gpus"]]
    measured = [int(n) for n in total.loc[total["measured_span_s"].notna(), "gpus"]]
    shown = max((n for n in counts if n <= has(machine) < float("inf")), default=measured[-1])
    return [
        f"Seconds per iteration, modelled; cost is relative to {counts[0]}.",
        "",
        *table_in_words(total[["gpus", "role", *QUANTITIES]], fitted.model),
        "",
        *answers(table, machine.unit),
        "",
        *what_moves_it(fitted.model, counts, shown),
        "",
        *_off(total),
        "",
    ]


def _paces(fitted: Fitted) -> list[str]:
    """What messages went at, at each fitted count."""
    return [
        f"At {line.gpus}, bytes, counted as a {line.algorithm}'s, go at {digits(line.gb_per_s)} GB/s"
        f"{f', after {seconds(line.alpha_s)} a message' if line.alpha_s else ''}."
        for line in fitted.lines
    ]


def _off(total: pd.DataFrame) -> list[str]:
    """How far the prediction is off at each measured count, in sentences."""
    said = []
    for row in total[total["measured_span_s"].notna()].to_dict("records"):
        names = [name for name in SHOWN if row["gpus"] > 1 or name not in ("transfer_s", "wait_s")]
        off = {name: signed_percent(row[f"error_{name}"], "unknown") for name in names}
        errors = [f"{name.removesuffix('_s').replace('_', ' ')} {shown}" for name, shown in off.items()]
        flag = ", where ranks share cores, which the model does not know" if row["oversubscribed"] else ""
        words = {FITTED: "Fitted", HELD_OUT: "Held out"}[row["role"]]
        said.append(f"{words} at {row['gpus']}{flag}: {', '.join(errors)}.")
    if not (total["role"] == HELD_OUT).any():
        said.append("No count was held out: measure another one to see how far the prediction is off.")
    return ["Modelled over measured, all sections together:", *said]


def _doubts(table: pd.DataFrame, runs: Mapping[int, Measured], fitted: Fitted, machine: Machine) -> list[str]:
    """What the prediction does not carry."""
    counts = [int(n) for n in table["gpus"].unique()]
    chosen = [int(n) for n in table.loc[table["role"] == FITTED, "gpus"].unique()]
    said = limits(fitted.model, machine, counts)
    shared = [str(n) for n in chosen if runs[n].table["oversubscribed"].any()]
    if shared:
        said.append(f"Fitted at {listed(shared)}, where ranks share cores: what is predicted from it is too slow.")
    if shares_cores(counts[-1], machine):
        said.append("Each rank is taken to have a core of its own, also where this machine has fewer.")
    across = any(n > run.per_node for n, run in runs.items() if n in chosen)
    if fitted.lines and not across and counts[-1] > ranks_on_a_host(counts[-1], machine):
        said.append("No fitted count spans nodes: between nodes the rate inside one is taken to hold, which flatters.")
    unknown = [str(line.gpus) for line in fitted.lines if runs[line.gpus].algorithm == UNKNOWN]
    if unknown and machine.backend == "nccl":
        said.append(f"No NCCL log says which algorithm ran at {listed(unknown)}: read as a ring.")
    return [*said, *_late(runs, chosen)]


def _late(runs: Mapping[int, Measured], chosen: Sequence[int]) -> list[str]:
    """How much of the measured wait is of a kind that the model does not have."""
    totals = [runs[n].table.set_index("section").loc[TOTAL] for n in chosen if n > 1]
    known = [row for row in totals if row["wait_s"] > 0 and pd.notna(row["wait_late_start_s"])]
    if not known:
        return ["Late starts are not modelled; how much of the measured wait they are is not known."]
    late, wait = pd.DataFrame(known)[["wait_late_start_s", "wait_s"]].clip(lower=0).sum()
    return [f"Late starts are not modelled: at the fitted counts they are {percent(late / wait)} of the wait."]
