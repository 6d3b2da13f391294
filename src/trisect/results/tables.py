"""Every table that crosses from one room to another: its columns in order, their types, and what they hold.

A table is a pandas DataFrame with exactly the columns of its Table and a RangeIndex. Units are in the column's name.
What reads a table from a file reads it through `read_table`, which says where it is not as it must be.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pandas as pd

from trisect.errors import TrisectError
from trisect.results.notes import Note

Values = npt.NDArray[np.float64]

TOTAL = "total"
"""Section name of the row that sums all sections."""

OUTSIDE = ""
"""Section name of a collective that ran in no section, such as the barrier that closes an iteration."""

PARTS = ("compute", "transfer", "wait")
"""What a section's span adds up from: columns compute_s, transfer_s, wait_s."""

WAIT_CAUSES = {"imbalance": "wait_imbalance_s", "jitter": "wait_jitter_s", "late start": "wait_late_start_s"}
"""What the wait adds up from, by its words."""

ALL_TO_ALL = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"})
"""Collectives that end on no rank before every rank has arrived, so that the shortest exposed time is transfer."""

ROOTED = frozenset({"broadcast", "reduce", "gather", "scatter"})
"""Collectives with a root: the shortest exposed time is only a lower bound of the transfer."""

POINT_TO_POINT = frozenset({"send", "recv"})


class Table(dict[str, str]):
    """The columns of one kind of table, with their types, in order.

    Args:
        columns: type by name: int64, float64, bool or str. Numbers of float64 may be missing (NaN).
        remake: the command that writes such a file again.
        optional: columns that only some files of the kind have, after the others.
        may_be_empty: whether such a file may have no row.
    """

    def __init__(
        self,
        columns: Mapping[str, str],
        remake: str = "",
        optional: Mapping[str, str] = MappingProxyType({}),
        *,
        may_be_empty: bool = False,
    ) -> None:
        super().__init__(columns)
        self.remake, self.optional, self.may_be_empty = remake, dict(optional), may_be_empty


def as_table(rows: Iterable[Mapping[str, object]] | pd.DataFrame, table: Table) -> pd.DataFrame:
    """Rows as a table: its columns, in its order, with its types.

    Raises:
        KeyError: a column is missing.
    """
    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame.from_records(list(rows))
    if frame.empty:
        frame = pd.DataFrame(columns=list(table))
    return frame[list(table)].astype(dict(table)).reset_index(drop=True)


def read_table(path: Path, table: Table) -> pd.DataFrame:
    """A table from its file, CSV or Parquet by the name's ending, with columns and types checked.

    Raises:
        TrisectError: there is no such file, it is damaged, or another version of trisect wrote it.
    """
    again = f"make it again: {table.remake}"
    try:
        frame = _read(path, table)
    except FileNotFoundError:
        raise TrisectError(f"{path}: no such file; make it: {table.remake}") from None
    except Exception as error:  # the readers raise what the bytes happen to provoke
        why = " ".join(str(error).split())[:200]
        raise TrisectError(f"{path}: damaged, not readable as a table ({why}); {again}") from None
    wanted = dict(table) | {name: kind for name, kind in table.optional.items() if name in frame}
    for name in (*wanted, *frame):
        if name not in frame or name not in wanted:
            what = f"no column {name!r}" if name in wanted else f"column {name!r} is unknown"
            raise TrisectError(f"{path}: {what}: another version of trisect wrote it; {again}")
    frame = frame[list(wanted)].astype({name: wanted[name] for name in wanted if _lossless(frame[name], wanted[name])})
    if name := _of_wrong_type(frame, wanted):
        what = f"column {name!r} does not hold {wanted[name]} alone"
        raise TrisectError(f"{path}: {what}: another version of trisect wrote it, or it is damaged; {again}")
    if frame.empty and not table.may_be_empty:
        raise TrisectError(f"{path}: no row; {again}")
    return frame


def _read(path: Path, table: Table) -> pd.DataFrame:
    """A file as it is: in a column of text, 0 stays "0", "None" stays, and an empty cell is ""."""
    text = [name for name, kind in {**table, **table.optional}.items() if kind == "str"]
    if path.suffix == ".parquet":
        import fastparquet  # 0.2 s; pandas' own way to it is deprecated

        frame = fastparquet.ParquetFile(str(path)).to_pandas()
    else:
        types = dict.fromkeys(text, "str")
        frame = pd.read_csv(path, low_memory=False, dtype=types, keep_default_na=False, na_values=[""])
    return frame.assign(**{name: frame[name].fillna("") for name in text if name in frame})


def write_parquet(frame: pd.DataFrame, path: Path) -> None:
    """A table to a Parquet file, whatever the file's name ends in."""
    import fastparquet

    fastparquet.write(str(path), frame, compression="SNAPPY", write_index=False)


def _lossless(column: pd.Series, kind: str) -> bool:
    """Whether a column can become `kind` without a look at its values: none has any, or integers become floats."""
    return column.empty or kind == "str" or (kind == "float64" and pd.api.types.is_integer_dtype(column))


def _of_wrong_type(frame: pd.DataFrame, wanted: Mapping[str, str]) -> str | None:
    """The first column whose values are not of its type; None where all are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its note on top-level imports
        import pandera.pandas as pandera  # takes 0.2 s to import, which commands that read no table need not wait for
    columns = {name: pandera.Column(kind, nullable=kind == "float64") for name, kind in wanted.items()}
    try:
        pandera.DataFrameSchema(columns).validate(frame)
    except pandera.errors.SchemaError as error:
        return str(error.schema.name)
    return None


def with_bounds(columns: Iterable[str]) -> list[str]:
    """Each column followed by the `_lo` and `_hi` ends of its 95 % interval."""
    return [name for column in columns for name in (column, f"{column}_lo", f"{column}_hi")]


def counts_of(gpus: pd.Series) -> list[int]:
    """The GPU counts in a column, each once, ascending."""
    return sorted({int(n) for n in gpus})


def _floats(columns: Iterable[str]) -> dict[str, str]:
    return dict.fromkeys(columns, "float64")


# --- from trace to analysis: integer nanoseconds on the rank's own clock, so that no column compares two ranks ---

SECTIONS = Table(
    {
        "rank": "int64",
        "iteration": "int64",  # the profiler's step number, or 0, 1, ... by order
        "section": "str",
        "occurrence": "int64",  # 0, 1, ... where a section comes back within one iteration
        "start_ns": "int64",  # of the section span: first device activity (CUDA), annotation (CPU)
        "end_ns": "int64",
        "busy_ns": "int64",  # union of compute activity within the span
    }
)
"""One row per rank, iteration, section and occurrence."""

COLLECTIVES = Table(
    {
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
        "hidden_ns": "int64",  # under compute or an earlier collective of that rank, or outside the span
    }
)
"""One row per rank and collective, in order of start on that rank."""

READINGS = Table(
    {
        "rank": "int64",
        "file": "str",
        "events": "int64",
        "repairs": "int64",  # values repaired while reading; a number resting on one says so
        "device_ns": "int64",  # all device activity within the iterations kept
        "unattributed_ns": "int64",  # the part of it that belongs to no launch
    }
)
"""One row per rank: how its file was read, and how far to trust it."""


@dataclass(frozen=True)
class Trace:
    """One job as three tables, SECTIONS, COLLECTIVES and READINGS, and what to know about how they were read."""

    sections: pd.DataFrame
    collectives: pd.DataFrame
    readings: pd.DataFrame
    notes: list[Note] = field(default_factory=list)


# --- files of one run: a row per section and a row TOTAL ---

TIMES = (
    "span_s",
    "compute_s",
    "transfer_s",
    "wait_s",
    "hidden_s",
    "idle_s",
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

RELATIVE = ("speedup", "cost", "comp_scaling", "global_efficiency")
"""Relative to the smallest count of the sweep; only in scaling.csv."""

_DECOMPOSE = "trisect decompose, or in a sweep snakemake --forcerun decompose -- report"
_AGAIN = "snakemake --forcerun decompose -- report"

RUN_COLUMNS = {
    "oversubscribed": "bool",  # more ranks than cores: looks like scaling loss, is not
    "load_balance_bound": "float64",  # the best load balance that whole tiles and whole operators allow
    "profiling_overhead": "float64",  # iteration time with the profiler over without
    "peak_memory_bytes": "float64",  # of the rank that used most
}
"""What the run's own record adds to each of its rows."""

DECOMPOSITION = Table(
    {
        "section": "str",
        "gpus": "int64",
        "iterations": "int64",
        **_floats(with_bounds(TIMES)),
        **_floats(with_bounds(EFFICIENCIES)),
        "collectives": "float64",  # per rank and iteration
        "payload_bytes": "float64",  # per iteration, of the collectives whose size the trace gives
        "transfer_is_bound": "bool",  # true where a rooted collective makes transfer a lower bound
        "unattributed_share": "float64",  # of the device time, over all ranks
        "repairs": "int64",  # values repaired while reading the traces, over all ranks
    },
    _DECOMPOSE,
    optional={"experiment": "str", **RUN_COLUMNS},
)
"""decomposition.csv of any job: a run's has `experiment` and RUN_COLUMNS too."""

RUN_DECOMPOSITION = Table({"experiment": "str", **DECOMPOSITION, **RUN_COLUMNS}, _AGAIN)
"""decomposition.csv of a run of the workflow, with what its record adds."""

PAIRED_COLLECTIVES = Table(
    {
        "iteration": "int64",
        "section": "str",
        "op": "str",
        "group": "str",
        "group_size": "int64",
        "bytes": "int64",
        **_floats(("transfer_s", "mean_wait_s", "max_wait_s")),
        "last_rank": "int64",
        "end_spread_s": "float64",
    },
    _DECOMPOSE,
    may_be_empty=True,
)
"""collectives.csv: a row per iteration, section and paired collective."""

PER_ITERATION = tuple(name for name in TIMES if name not in ("wait_imbalance_s", "wait_jitter_s"))
"""Those of TIMES that have a value in each iteration; imbalance and jitter compare iterations."""

ITERATIONS = Table({"iteration": "int64", "section": "str", **_floats(PER_ITERATION)}, _DECOMPOSE)
"""iterations.parquet: a row per iteration and section."""

RANKS = Table(
    {
        "rank": "int64",
        "iteration": "int64",
        "section": "str",
        **_floats(("compute_s", "wait_s", "transfer_s", "span_s")),
    },
    _DECOMPOSE,
)
"""ranks.parquet: a row per rank, iteration and section."""

# --- files of one experiment ---

SCALING = Table(
    {**RUN_DECOMPOSITION, "baseline_gpus": "int64", **_floats(with_bounds(RELATIVE))},
    _AGAIN,
    optional={"modelled": "bool"},
)
"""scaling.csv: the decomposition at every count, and what relates it to the smallest."""

RATES = Table(
    {
        "experiment": "str",
        "section": "str",
        "gpus": "int64",
        "route": "str",  # "inside" one node, "between" nodes
        "algorithm": "str",  # what NCCL's log names, or "unknown"; gloo's is a ring
        "reading": "str",  # the assumed algorithm, whose bytes are taken; both where it is unknown
        "sent_bytes": "float64",  # by a GPU inside a node, by a node between nodes
        "transfer_s": "float64",
        **_floats(with_bounds(["gb_per_s"])),  # sent_bytes / transfer_s
        "machine_gb_per_s": "float64",  # what the machine's file has for that route and algorithm; NaN where none
        "fitted_at": "int64",  # smallest count of that section, route and algorithm; inside a node each is a route
        "off": "float64",  # relative error of what the rate at `fitted_at` predicts; 0 at `fitted_at` itself
        "probed_gb_per_s": "float64",  # what results/probe/fits.csv has for that count and algorithm; NaN where none
        "hidden_s": "float64",  # communication under compute, which transfer_s leaves out
        "iterations": "int64",
        "oversubscribed": "bool",
        "cut_lines": "int64",  # of the run's NCCL logs, left out
    },
    "snakemake --forcerun rates -- report",
    may_be_empty=True,
)
"""rates.csv: the rate that each measured transfer implies, beside the machine's and the probe's."""

MODELLED_TIMES = ("span_s", "compute_s", "transfer_s", "wait_s", "compute_max_s")
"""The times that the model gives, as TIMES has them."""

PREDICTED_QUANTITIES = (*MODELLED_TIMES, "load_balance", "comm_efficiency", "parallel_efficiency", "cost")
"""What is predicted; cost is relative to the smallest measured count."""

MEASURED_QUANTITIES = (*with_bounds(PREDICTED_QUANTITIES[:-1]), PREDICTED_QUANTITIES[-1])
"""The same measured, with 95 % intervals, which one run alone gives for all but cost."""

FITTED, HELD_OUT, PREDICTED = "fitted", "held out", "predicted"

PREDICTION = Table(
    {
        "experiment": "str",
        "section": "str",
        "gpus": "int64",
        "role": "str",  # FITTED, HELD_OUT (measured and not fitted), PREDICTED (not measured)
        "oversubscribed": "bool",  # of the measured run: its ranks shared cores, which the model does not know
        **_floats(PREDICTED_QUANTITIES),  # modelled
        **_floats(f"measured_{name}" for name in MEASURED_QUANTITIES),  # NaN where not measured
        **_floats(f"error_{name}" for name in PREDICTED_QUANTITIES),  # (modelled - measured) / measured
    },
    "snakemake --forcerun prediction -- report",
)
"""prediction.csv: every count modelled, and beside it what was measured."""

# --- files of the probe, and of a comparison ---

ALL_REDUCE = Table(
    {
        "gpus": "int64",
        "nodes": "int64",
        "backend": "str",
        "algorithm": "str",  # machine.AUTO, or the one that NCCL was told to take
        "cadence": "str",  # probe_statistics.ISOLATED: after a barrier each, or STREAMED: one after the other
        "payload_bytes": "int64",
        "repetitions": "int64",
        **_floats(("min_s", "median_s", "p95_s", "p99_s")),
        **_floats(("algbw_gb_per_s", "busbw_gb_per_s")),  # of the median, by nccl-tests' definitions
        "wrong": "int64",  # results that were not the true sum; 0, or the probe would have failed
        "warmup_s": "float64",  # all all_reduces of this size and cadence that are not counted, together
    },
    "snakemake --forcerun all_reduce -- probe",
)
"""all_reduce.csv of a probe: one row per cadence and size."""

FITS = Table(
    {
        "gpus": "int64",
        "nodes": "int64",
        "algorithm": "str",  # of the probe, as in ALL_REDUCE
        "ran": "str",  # what NCCL's log names; "unknown" where none does
        "reading": "str",  # the assumed algorithm, whose bytes are taken; both where `ran` is neither ring nor tree
        "protocol": "str",
        "nccl_version": "str",  # "none" where NCCL did not run
        **_floats(with_bounds(("alpha_s", "gb_per_s"))),
        "crossover_bytes": "float64",  # payload whose bytes take as long as the latency
        "sizes": "int64",
        "smallest_bytes": "int64",
        "largest_bytes": "int64",
        "residual": "float64",  # largest relative error of the line, either way
        "r2": "float64",  # of the logarithms of the times
        "oversubscribed": "bool",  # more ranks than cores: slower for that reason alone
    },
    "snakemake --forcerun alpha_beta -- probe",
)
"""results/probe/fits.csv: latency and rate of every count's all_reduces."""

COMPARISON = Table(
    {
        "experiment": "str",
        "gpus": "int64",
        "section": "str",
        "metric": "str",
        **_floats(("before", "after")),
        **_floats(with_bounds(["difference"])),  # after - before, with its 95 % bootstrap interval over iterations
        "change": "float64",  # times: difference over the span before; efficiencies: the difference itself
        "p_adjusted": "float64",  # Holm's, over all rows
        "verdict": "str",  # worse, better, within noise, or unknown: fewer than 2 iterations, or not defined
    },
    "trisect compare",
)
"""comparison.csv: two sweeps, or two runs, beside each other."""
