"""From the probes' tables and NCCL logs to results/probe/fits.csv."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from trisect.comm.alpha_beta import FITS, fits
from trisect.config import ProbeRun
from trisect.errors import TrisectError
from trisect.files.nccl import tuning_of
from trisect.host import write_whole
from trisect.layout import Layout, ProbeLayout
from trisect.record import ProbeRecord
from trisect.tables import ALL_REDUCE, as_table


def write_fits(layout: Layout, probes: Iterable[ProbeRun]) -> list[str]:
    """Fit latency and rate to every probe and write them.

    Returns:
        What was left out, cut or not fitted, in sentences.

    Raises:
        TrisectError: a probe's files are missing, damaged or of another run, or none of them could be fitted.
    """
    tables, said = [], []
    for probe in probes:
        table, notes = _fits_of(layout.probe(probe.gpus, probe.algorithm), probe.gpus)
        tables += [table] if len(table) else []
        said += notes
    if not tables:
        why = "; ".join(said) or "one GPU alone sends nothing: probe 2 or more"
        raise TrisectError(f"{layout.fits}: no latency and rate could be fitted: {why}")
    write_whole(layout.fits, pd.concat(tables, ignore_index=True)[list(FITS)].to_csv(index=False))
    return said


def _fits_of(files: ProbeLayout, gpus: int) -> tuple[pd.DataFrame, list[str]]:
    record = ProbeRecord.read(files.record)
    if record.gpus != gpus:
        raise TrisectError(f"{files.record}: it is of {record.gpus} GPUs, not of {gpus}; probe this count again")
    tuning, cut = tuning_of(files, gpus)
    version = record.versions.get("nccl", "") if record.backend == "nccl" else ""
    found, refused = fits(_table(files, gpus), tuning, version, oversubscribed=record.oversubscribed)
    who = f"{gpus} GPUs, {record.algorithm}"
    notes = [f"{who}: left out {record.left_out}"] if record.left_out else []
    notes += [f"{who}: ranks shared cores: slower for that reason alone"] if record.oversubscribed else []
    notes += [f"{who}: {cut} lines of the NCCL log were cut and are left out"] if cut else []
    notes += [f"{who}: no NCCL log, so that what ran is unknown"] if record.backend == "nccl" and tuning is None else []
    return found, notes + refused


def _table(files: ProbeLayout, gpus: int) -> pd.DataFrame:
    try:
        table = as_table(pd.read_csv(files.all_reduce)[list(ALL_REDUCE)], ALL_REDUCE)
        if set(table["gpus"]) != {gpus}:
            raise ValueError(f"not of {gpus} GPUs alone")
        return table
    except (OSError, ValueError, KeyError) as error:
        said = " ".join(str(error).split())
        raise TrisectError(f"{files.all_reduce}: not a probe's table ({said}); probe this count again") from None
