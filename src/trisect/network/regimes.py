"""Is a message's time latency or bytes? Compared with the crossover, the size at which both take equally long."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from trisect.config.machine import AUTO
from trisect.network.nccl_log import UNKNOWN_ALGORITHM, ran_for
from trisect.results.notes import Note, note

MESSAGES = ("section", "payload_bytes", "count", "protocol", "crossover_bytes", "latency_share", "regime")
"""Columns of `messages`. count: per iteration; latency_share: of the message's time."""

BOUND = 0.75
"""Of a message's time, what latency, or bytes, make up where it is bound by them."""


def messages(
    collectives: pd.DataFrame, fits: pd.DataFrame, gpus: int, tuning: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Which regime each all_reduce of a run is in, by the probe of the same count.

    Of several fits of that count, a message takes the one of its own algorithm and protocol in the run's NCCL log,
    else the one whose sizes reach nearest to it.

    Args:
        collectives: collectives.csv of the run.
        fits: tables.FITS.
        gpus: of the run.
        tuning: nccl_log.TUNING of the run, if it left a log.

    Returns:
        MESSAGES: a row for each section and payload, sections as they come, small payloads first. The regime is
        "unknown" where no probe of that count could be fitted.
    """
    known = collectives[(collectives["op"] == "all_reduce") & (collectives["bytes"] > 0)]
    iterations = collectives["iteration"].nunique()
    here = fits[(fits["gpus"] == gpus) & (fits["algorithm"] == AUTO)].to_dict("records")
    rows = []
    for section in known["section"].unique():
        sizes = known.loc[known["section"] == section, "bytes"].value_counts().sort_index()
        for payload, count in sizes.items():
            line = _nearest(here, int(payload), tuning)
            crossover = float(line.get("crossover_bytes", math.nan))
            share = crossover / (crossover + payload)
            protocol = line.get("protocol", UNKNOWN_ALGORITHM)
            rows.append((section, payload, count / iterations, protocol, crossover, share, regime(payload, crossover)))
    return pd.DataFrame(rows, columns=list(MESSAGES))


def regime(payload_bytes: float, crossover_bytes: float) -> str:
    """What an all_reduce's time mostly is: "latency-bound", "bandwidth-bound", or "between" the two.

    By BOUND: bound by latency up to a third of the crossover, by bandwidth from three times it. "unknown" where the
    crossover is NaN.
    """
    if math.isnan(crossover_bytes):
        return UNKNOWN_ALGORITHM
    share = crossover_bytes / (crossover_bytes + payload_bytes)
    if share >= BOUND:
        return "latency-bound"
    return "bandwidth-bound" if share <= 1 - BOUND else "between"


def regime_notes(messages: pd.DataFrame, gpus: int) -> list[Note]:
    """Whether a run's all_reduces (its MESSAGES) are mostly latency or mostly bytes, a note a section."""
    found = []
    for section, rows in messages.groupby("section", sort=False):
        kinds = rows.groupby("regime", sort=False).agg(
            count=("count", "sum"), smallest_bytes=("payload_bytes", "min"), largest_bytes=("payload_bytes", "max")
        )
        found.append(note("message_regimes", section=section, gpus=gpus, kinds=kinds.reset_index().to_dict("records")))
    return found


def _nearest(lines: Sequence[Mapping[Any, Any]], payload_bytes: int, tuning: pd.DataFrame | None) -> Mapping[Any, Any]:
    """The fit for a message, empty where there is none."""
    ran = None if tuning is None else ran_for(tuning, "all_reduce", payload_bytes)
    same = [line for line in lines if (line["ran"], line["protocol"]) == ran] or lines

    def away(line: Mapping[Any, Any]) -> float:
        return max(line["smallest_bytes"] / payload_bytes, payload_bytes / line["largest_bytes"], 1.0)

    return min(same, key=away, default={})
