"""Every table that crosses from one room to another; tables.yaml has its columns, their types and what they hold.

A table is a pandas DataFrame with exactly the columns of its Table and a RangeIndex. Units are in the column's name.
What reads a table from a file reads it through `read_table`, which says where it is not as it must be.
"""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pandas as pd

from trisect.errors import TrisectError
from trisect.host import shipped_yaml
from trisect.results.notes import Note

Values = npt.NDArray[np.float64]

RunKey = tuple[str, int]
"""A run by its experiment and its count."""

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
    """The columns of one kind of table, with their types, in order; and the command that makes such a file again.

    Types are int64, float64 (may be missing, NaN), bool or str. `optional` columns, after the others, are those that
    only some files of the kind have.
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


_GROUPS: dict[str, dict[str, list[str]]] = shipped_yaml("trisect.results", "tables.yaml")

ABOUT = {name: about for group in _GROUPS.values() for name, (_, about) in group.items() if about}
"""What a column holds, by its name: the page's table of all columns shows it."""


def _columns(*groups: str) -> dict[str, str]:
    """The columns of some groups of tables.yaml, one after the other."""
    columns: dict[str, str] = {}
    for name, (kind, _) in chain.from_iterable(_GROUPS[group].items() for group in groups):
        columns |= dict.fromkeys(with_bounds([name]), "float64") if kind == "interval" else {name: kind}
    return columns


SECTIONS, COLLECTIVES, READINGS = (Table(_columns(group)) for group in ("sections", "collectives", "readings"))
"""What `trace` gives: one row per rank, iteration, section and occurrence; per rank and collective; per rank."""


@dataclass(frozen=True)
class Trace:
    """One job as three tables, SECTIONS, COLLECTIVES and READINGS, and what to know about how they were read."""

    sections: pd.DataFrame
    collectives: pd.DataFrame
    readings: pd.DataFrame
    notes: list[Note] = field(default_factory=list)


TIMES = tuple(_GROUPS["times"])
"""Seconds per iteration: the mean over ranks (`compute_max_s`: of the slowest rank), then over iterations."""

EFFICIENCIES = tuple(_GROUPS["efficiencies"])
"""POP efficiencies, 1 is perfect. docs/metrics.md derives each."""

RELATIVE = tuple(_GROUPS["relative"])
"""Relative to the smallest count of the sweep; only in scaling.csv."""

RUN_COLUMNS = _columns("run")
"""What the run's own record adds to each of its rows."""

PER_ITERATION = tuple(name for name in TIMES if name not in ("wait_imbalance_s", "wait_jitter_s"))
"""Those of TIMES that have a value in each iteration; imbalance and jitter compare iterations."""

MODELLED_TIMES = ("span_s", "compute_s", "transfer_s", "wait_s", "compute_max_s")
"""The times that the model gives, as TIMES has them."""

PREDICTED_QUANTITIES = (*MODELLED_TIMES, "load_balance", "comm_efficiency", "parallel_efficiency", "cost")
"""What is predicted; cost is relative to the smallest measured count."""

MEASURED_QUANTITIES = (*with_bounds(PREDICTED_QUANTITIES[:-1]), PREDICTED_QUANTITIES[-1])
"""The same measured, with 95 % intervals, which one run alone gives for all but cost."""

FITTED, HELD_OUT, PREDICTED = "fitted", "held out", "predicted"

_DECOMPOSE = "trisect decompose, or in a sweep snakemake --forcerun decompose -- report"
_AGAIN = "snakemake --forcerun decompose -- report"

# decomposition.csv of any job; of a run of the workflow with what its record adds
DECOMPOSITION = Table(
    _columns("identity", "times", "efficiencies", "traffic"), _DECOMPOSE, {"experiment": "str", **RUN_COLUMNS}
)
RUN_DECOMPOSITION = Table({"experiment": "str", **DECOMPOSITION, **RUN_COLUMNS}, _AGAIN)

# the other files of a run: a row per iteration and section and paired collective, or nothing more, or rank
PAIRED_COLLECTIVES = Table(_columns("paired_collectives"), _DECOMPOSE, may_be_empty=True)
ITERATIONS = Table({"iteration": "int64", "section": "str", **dict.fromkeys(PER_ITERATION, "float64")}, _DECOMPOSE)
RANKS = Table(_columns("ranks"), _DECOMPOSE)

# files of an experiment
SCALING = Table({**RUN_DECOMPOSITION, "baseline_gpus": "int64", **_columns("relative")}, _AGAIN, {"modelled": "bool"})
RATES = Table(_columns("rates"), "snakemake --forcerun rates -- report", may_be_empty=True)
PREDICTION = Table(
    _columns("prediction")
    | dict.fromkeys(PREDICTED_QUANTITIES, "float64")  # modelled
    | dict.fromkeys((f"measured_{name}" for name in MEASURED_QUANTITIES), "float64")  # NaN where not measured
    | dict.fromkeys((f"error_{name}" for name in PREDICTED_QUANTITIES), "float64"),  # (modelled - measured) / measured
    "snakemake --forcerun prediction -- report",
)

# files of the probe, and of a comparison
ALL_REDUCE = Table(_columns("all_reduce"), "snakemake --forcerun all_reduce -- probe")
FITS = Table(_columns("fits"), "snakemake --forcerun alpha_beta -- probe")
COMPARISON = Table(_columns("comparison"), "trisect compare")
