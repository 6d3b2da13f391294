"""The tables between the measuring half and the analysing half; nothing else crosses.

`trisect.trace` writes them, `trisect.analysis` reads them. Times are integer nanoseconds on the
rank's own clock: no column compares two ranks, so no column depends on how clocks are set.
A table is a pandas DataFrame with exactly the columns below, in this order, and a RangeIndex.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

OUTSIDE = ""
"""Section name of a collective that ran in no section, such as the barrier that closes an iteration."""

TOTAL = "total"
"""Section name of the row that sums all sections."""

ALL_TO_ALL = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"})
"""Collectives that end on no rank before every rank has arrived, so that the shortest exposed time is transfer."""

ROOTED = frozenset({"broadcast", "reduce", "gather", "scatter"})
"""Collectives with a root: the shortest exposed time is only a lower bound of the transfer."""

POINT_TO_POINT = frozenset({"send", "recv"})

SECTIONS: dict[str, str] = {
    "rank": "int64",
    "iteration": "int64",  # the profiler's step number, or 0, 1, ... by order
    "section": "str",
    "occurrence": "int64",  # 0, 1, ... where a section comes back within one iteration
    "start_ns": "int64",  # of the section span: first device activity (CUDA), annotation (CPU)
    "end_ns": "int64",
    "busy_ns": "int64",  # union of compute activity within the span
}
"""One row per rank, iteration, section and occurrence."""

COLLECTIVES: dict[str, str] = {
    "rank": "int64",
    "iteration": "int64",
    "section": "str",  # OUTSIDE where it belongs to none
    "occurrence": "int64",
    "group": "str",  # process group name; "" where the trace names none (gloo)
    "seq": "int64",  # sequence number within the group; -1 where the trace has none
    "op": "str",  # all_reduce, all_gather, ... ; send and recv
    "bytes": "int64",  # payload by the operation's own rule; -1 where the trace does not say
    "group_size": "int64",
    "start_ns": "int64",
    "end_ns": "int64",
    "hidden_ns": "int64",  # of end - start: under compute or an earlier collective of that rank, or outside the span
}
"""One row per rank and collective, in order of start on that rank."""

READINGS: dict[str, str] = {
    "rank": "int64",
    "file": "str",
    "events": "int64",
    "repairs": "int64",  # values mended while reading; a number resting on one says so
    "repaired": "str",  # "bare_nan x3; invalid_utf8 x1"
    "skipped_iterations": "str",  # those left out, with the reason
    "device_ns": "int64",  # all device activity within the iterations kept
    "unattributed_ns": "int64",  # the part of it that belongs to no launch
}
"""One row per rank: how its file was read, and how far to trust it."""


@dataclass(frozen=True)
class Trace:
    """One job as three tables: SECTIONS, COLLECTIVES, READINGS."""

    sections: pd.DataFrame
    collectives: pd.DataFrame
    readings: pd.DataFrame


def as_table(rows: Iterable[Mapping[str, object]] | pd.DataFrame, schema: dict[str, str]) -> pd.DataFrame:
    """Rows as a table of `schema`: its columns, in its order, with its dtypes.

    Raises:
        KeyError: a column is missing.
    """
    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame.from_records(list(rows))
    if frame.empty:
        frame = pd.DataFrame(columns=list(schema))
    return frame[list(schema)].astype(schema).reset_index(drop=True)


# --- public tables (CSV): one row per section and a row TOTAL, units in the column name ---

TIMES = (
    "span_s",
    "compute_s",
    "transfer_s",
    "wait_s",
    "hidden_s",
    "gap_s",
    "compute_max_s",
    "wait_imbalance_s",
    "wait_jitter_s",
    "wait_late_start_s",
)
"""Seconds per iteration: the mean over ranks (`compute_max_s`: of the slowest rank), then over iterations."""

EFFICIENCIES = (
    "load_balance",
    "comm_efficiency",
    "serialization_efficiency",
    "transfer_efficiency",
    "parallel_efficiency",
)
"""POP efficiencies, 1 is perfect. docs/metrics.md derives each."""

RELATIVE = ("cost", "comp_scaling", "global_efficiency")
"""Against the smallest count of the sweep; only in scaling.csv."""


def with_bounds(columns: Iterable[str]) -> list[str]:
    """Each column followed by the `_lo` and `_hi` ends of its 95 % interval."""
    return [name for column in columns for name in (column, f"{column}_lo", f"{column}_hi")]


DECOMPOSITION = [
    "section",
    "gpus",
    "iterations",
    *with_bounds(TIMES),
    *with_bounds(EFFICIENCIES),
    "collectives",  # per rank and iteration
    "payload_bytes",  # per iteration, of the collectives whose size the trace gives
    "transfer_is_bound",  # true where a rooted collective makes transfer a lower bound
    "unattributed_share",  # of the device time, over all ranks
    "repairs",  # values mended while reading the traces, over all ranks
]
"""Columns of decomposition.csv. The workflow puts `experiment` first and RUN_COLUMNS last."""

RUN_COLUMNS = [
    "oversubscribed",  # more ranks than cores: looks like scaling loss, is not
    "load_balance_bound",  # the best load balance that whole tiles and whole operators allow
    "profiling_price",  # iteration time with the profiler over without
]
"""What the run's own record adds to each of its rows."""

SCALING = ["experiment", *DECOMPOSITION, *RUN_COLUMNS, "baseline_gpus", *with_bounds(RELATIVE)]
"""Columns of scaling.csv: the decomposition at every count, and what relates it to the smallest."""

ALL_REDUCE: dict[str, str] = {
    "gpus": "int64",
    "nodes": "int64",
    "backend": "str",
    "algorithm": "str",  # settings.CHOSEN, or the one that NCCL was told to take
    "cadence": "str",  # separated by barriers, or back_to_back
    "payload_bytes": "int64",
    "repetitions": "int64",
    "min_s": "float64",
    "median_s": "float64",
    "p95_s": "float64",
    "p99_s": "float64",
    "algbw_gb_per_s": "float64",  # both of the median, by nccl-tests' definitions
    "busbw_gb_per_s": "float64",
    "wrong": "int64",  # results that were not the true sum; 0, or the probe would have failed
    "warmup_s": "float64",  # all all_reduces of this size and cadence that are not counted, together
}
"""Columns of a probe's all_reduce.csv: one row per cadence and size."""
