"""The rule `prediction`: an experiment's measured counts to prediction.csv, its record, and that in words."""

import pandas as pd

from trisect.config.machine import Machine
from trisect.config.plan import Sweep
from trisect.errors import TrisectError
from trisect.model import answers
from trisect.model.allreduce_cost import AllReduceCosts, lines_of, of_lines, of_links
from trisect.model.fit import Measured, counts_to_fit, fit
from trisect.model.predict import outline, predict
from trisect.model.validate import beside
from trisect.network.nccl_log import UNKNOWN_ALGORITHM
from trisect.pipeline.files import algorithms_of, fits_of, write_all
from trisect.report.text.prediction_text import prediction_text
from trisect.results.layout import Layout, RunLayout
from trisect.results.notes import Note, note
from trisect.results.tables import PAIRED_COLLECTIVES, PREDICTED_QUANTITIES, RANKS, RUN_DECOMPOSITION, read_table


def write_prediction(sweep: Sweep, layout: Layout, experiment: str) -> list[str]:
    """Fit some measured counts of one experiment and predict all; write prediction.csv, .json and .txt.

    Args:
        sweep: says which counts are measured, and which of them are fitted.
        layout: with the decomposition of each of these counts, and the probe's fits where it ran.
        experiment: one of the sweep's.

    Returns:
        What prediction.txt says, as lines.

    Raises:
        TrisectError: a run is missing or damaged, or nothing gives a rate.
    """
    machine, host = sweep.machine, sweep.machine.ranks_per_host
    runs = {n: read_run(layout.run(experiment, n), n, host(n)) for n in sweep.counts(experiment)}
    shared = {n: bool(run.table["oversubscribed"].any()) for n, run in runs.items()}
    chosen = counts_to_fit(shared, sweep.settings.predict.fit)
    known, source = all_reduces_of(machine, sweep.settings.machine, fits_of(layout))
    start = outline(experiment, sweep.experiments[experiment], sweep.settings.size, machine.gpu_memory_gb)
    fitted = fit(start, [runs[n] for n in chosen], host, all_reduce=known, jitter=machine.compute_jitter or None)
    counts = sorted({*runs, *answers.doublings(min(runs), host)})
    modelled = predict(fitted.model, counts)
    table = beside(experiment, modelled, {n: run.table for n, run in runs.items()}, chosen)
    notes = [source, *answers.caveats_of_fit(table, runs, fitted, machine, chosen), *fitted.notes]
    rates = [
        note("fitted_rate", gpus=line.gpus, algorithm=line.algorithm, gb_per_s=line.gb_per_s, alpha_s=line.alpha_s)
        for line in fitted.lines
    ]
    record = answers.prediction_record(
        fitted.model,
        machine,
        modelled,
        measured=max(runs),
        size=sweep.settings.size,
        machine=sweep.settings.machine,
        fitted=chosen,
        errors=answers.relative_errors(table),
        notes=[*notes, *rates],
    )
    lines = prediction_text(record, table[["gpus", "section", "role", *PREDICTED_QUANTITIES]])
    write_all(
        {
            layout.prediction(experiment): lambda path: table.to_csv(path, index=False),
            layout.prediction_record(experiment): record.write,
            layout.prediction_words(experiment): lambda path: path.write_text("\n".join(lines) + "\n"),
        }
    )
    return lines


def read_run(files: RunLayout, gpus: int, per_node: int) -> Measured:
    """One run of so many ranks, `per_node` of them on a node, as a fit takes it.

    Raises:
        TrisectError: its decomposition is missing, damaged or of another count, or its NCCL logs are of another run.
    """
    table = read_table(files.decomposition, RUN_DECOMPOSITION)
    if set(table["gpus"]) != {gpus}:
        raise TrisectError(f"{files.decomposition}: not of {gpus} ranks; make it again: {RUN_DECOMPOSITION.remake}")
    collectives, ranks = read_table(files.collectives, PAIRED_COLLECTIVES), read_table(files.ranks, RANKS)
    named = {how for how in algorithms_of(files, gpus)[0].values() if how != UNKNOWN_ALGORITHM}
    return Measured(gpus, per_node, table, ranks, collectives, named.pop() if len(named) == 1 else UNKNOWN_ALGORITHM)


def all_reduces_of(machine: Machine, name: str, fits: pd.DataFrame | None) -> tuple[AllReduceCosts | None, Note]:
    """What all_reduces take, and where that comes from: the machine's links, else the probe's fits, else None.

    Args:
        machine: which may have links.
        name: of its file.
        fits: tables.FITS; None where nothing was probed.
    """
    if machine.links is not None:
        return of_links(machine.links, machine.gpus_per_node), answers.rates_of_links(name, machine)
    lines = [] if fits is None else lines_of(fits)
    if fits is None or not lines:
        return None, note("rates_of_transfers")
    counts = [line.gpus for line in lines]
    shared = bool(fits.loc[fits["gpus"].isin(counts), "oversubscribed"].any())
    return of_lines(lines, machine.ranks_per_host), note("rates_of_probe", counts=counts, oversubscribed=shared)
