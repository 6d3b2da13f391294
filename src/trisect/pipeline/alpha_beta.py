"""The rule `alpha_beta`: the probes' tables and NCCL logs to results/probe/fits.csv."""

from collections.abc import Iterable

import pandas as pd

from trisect.config.plan import ProbeRun
from trisect.errors import TrisectError
from trisect.host import write_whole
from trisect.network.latency_bandwidth import fits
from trisect.pipeline.files import tuning_of
from trisect.report.text.note_words import all_in_words
from trisect.results.layout import Layout, ProbeLayout
from trisect.results.notes import Note, note
from trisect.results.record import ProbeRecord
from trisect.results.tables import ALL_REDUCE, FITS, read_table


def write_fits(layout: Layout, probes: Iterable[ProbeRun]) -> list[str]:
    """Fit latency and rate to every probe and write them.

    Returns:
        What was left out, cut or not fitted, in words.

    Raises:
        TrisectError: a probe's files are missing, damaged or of another run, or none of them could be fitted.
    """
    tables, notes, unit = [], [], "rank"
    for probe in probes:
        unit = "GPU" if probe.device == "cuda" else unit
        table, about = _fits_of(layout.probe(probe.gpus, probe.algorithm), probe.gpus)
        tables += [table] if len(table) else []
        notes += about
    if not tables:
        why = "; ".join(all_in_words(notes, unit)) or f"one {unit} alone sends nothing: probe 2 or more"
        raise TrisectError(f"{layout.fits}: no latency and rate could be fitted: {why}")
    write_whole(layout.fits, pd.concat(tables, ignore_index=True)[list(FITS)].to_csv(index=False))
    return all_in_words(notes, unit)


def _fits_of(files: ProbeLayout, gpus: int) -> tuple[pd.DataFrame, list[Note]]:
    record = ProbeRecord.read(files.record)
    if record.gpus != gpus:
        raise TrisectError(f"{files.record}: it is of {record.gpus} ranks, not of {gpus}; probe this count again")
    table = read_table(files.all_reduce, ALL_REDUCE)
    if set(table["gpus"]) != {gpus}:
        raise TrisectError(f"{files.all_reduce}: not of {gpus} ranks alone; probe this count again")
    tuning, cut = tuning_of(files, gpus)
    version = record.versions.get("nccl", "") if record.backend == "nccl" else ""
    found, refused = fits(table, tuning, version, oversubscribed=record.oversubscribed)
    who = {"gpus": gpus, "algorithm": record.algorithm}
    notes = [note("probe_left_out", **who, what=record.left_out.model_dump())] if record.left_out else []
    notes += [note("probe_shared_cores", **who)] if record.oversubscribed else []
    notes += [note("probe_log_cut", **who, lines=cut)] if cut else []
    notes += [note("probe_no_log", **who)] if record.backend == "nccl" and tuning is None else []
    return found, notes + refused
