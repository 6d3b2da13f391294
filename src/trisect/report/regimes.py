"""Whether a run's messages are mostly latency or mostly bytes, a sentence a section."""

from __future__ import annotations

import pandas as pd

from trisect.report import numbers


def sentences(messages: pd.DataFrame, gpus: int, unit: str = "GPU") -> list[str]:
    """What a probe of the same count says of a run's all_reduces.

    Args:
        messages: comm.regimes.MESSAGES of one run.
        gpus: of the run.
        unit: what is counted, in the singular.
    """
    said = []
    for section, rows in messages.groupby("section", sort=False):
        kinds = [_kind(str(regime), group) for regime, group in rows.groupby("regime", sort=False)]
        said.append(f"{section} at {gpus} {unit}s, all_reduces of an iteration: {numbers.listed(kinds)}.")
    return said


def _kind(regime: str, rows: pd.DataFrame) -> str:
    """ "3 of 8.00 B to 1.20 kB latency-bound"."""
    ends = [numbers.size(float(value)) for value in (rows["payload_bytes"].min(), rows["payload_bytes"].max())]
    return f"{rows['count'].sum():g} of {' to '.join(dict.fromkeys(ends))} {regime}"
