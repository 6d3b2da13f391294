"""Reading tables of results: what is wrong with a file is one line that names file, column and command."""

import math

import pandas as pd
import pytest
from filled import filled
from known import job_of, trace_of

from trisect.analysis.decomposition import decompose
from trisect.errors import TrisectError
from trisect.results.tables import (
    COLLECTIVES,
    DECOMPOSITION,
    ITERATIONS,
    PAIRED_COLLECTIVES,
    RANKS,
    RATES,
    RUN_COLUMNS,
    RUN_DECOMPOSITION,
    SCALING,
    as_table,
    read_table,
    write_parquet,
)


@pytest.fixture(name="found", scope="module")
def _found():
    return decompose(trace_of(job_of((3, 5), (4, 4))))


def write(frame, path):
    if path.suffix == ".parquet":
        write_parquet(frame, path)
    else:
        frame.to_csv(path, index=False)
    return path


@pytest.fixture(name="path", params=["table.csv", "table.parquet"])
def _path(request, tmp_path):
    return tmp_path / request.param


def said(path, table):
    with pytest.raises(TrisectError) as stopped:
        read_table(path, table)
    assert str(stopped.value).startswith(f"{path}: ")
    assert "\n" not in str(stopped.value)
    return str(stopped.value).removeprefix(f"{path}: ")


AGAIN = "make it again: trisect decompose, or in a sweep snakemake --forcerun decompose -- report"
OTHER_VERSION = f"another version of trisect wrote it; {AGAIN}"


def test_what_is_written_is_read_back(found, path):
    tables = {"table": DECOMPOSITION, "collectives": PAIRED_COLLECTIVES, "iterations": ITERATIONS, "ranks": RANKS}
    for name, table in tables.items():
        frame = getattr(found, name)
        pd.testing.assert_frame_equal(read_table(write(frame, path), table), as_table(frame, table))


def test_columns_come_in_the_contract_s_order_whatever_the_file_s(found, path):
    write(found.ranks[list(RANKS)[::-1]], path)
    assert list(read_table(path, RANKS).columns) == list(RANKS)


def test_columns_that_only_a_run_has_may_be_there(found, path):
    of_run = dict.fromkeys(RUN_COLUMNS, 1.0) | {"experiment": "e", "oversubscribed": True}
    write(found.table.assign(**of_run), path)
    assert list(read_table(path, DECOMPOSITION).columns) == [*DECOMPOSITION, "experiment", *RUN_COLUMNS]
    assert list(read_table(path, RUN_DECOMPOSITION).columns) == list(RUN_DECOMPOSITION)
    assert said(write(found.table, path), RUN_DECOMPOSITION).startswith("no column 'experiment': another version")


def test_a_column_that_is_missing(found, path):
    assert said(write(found.ranks.drop(columns="wait_s"), path), RANKS) == f"no column 'wait_s': {OTHER_VERSION}"


def test_a_column_that_is_unknown(found, path):
    frame = found.ranks.assign(later_s=0.0)
    assert said(write(frame, path), RANKS) == f"column 'later_s' is unknown: {OTHER_VERSION}"


@pytest.mark.parametrize(
    ("column", "values", "kind"),
    [
        ("gpus", ["two", "2"], "int64"),
        ("gpus", [2.5, 2.0], "int64"),
        ("gpus", [2.0, math.nan], "int64"),
        ("repairs", [True, False], "int64"),
        ("span_s", ["fast", "0.1"], "float64"),
        ("transfer_is_bound", ["maybe", "no"], "bool"),
        ("transfer_is_bound", [1, 0], "bool"),
    ],
)
def test_values_of_another_type(found, path, column, values, kind):
    said_ = said(write(found.table.assign(**{column: values}), path), DECOMPOSITION)
    other = "another version of trisect wrote it, or it is damaged"
    assert said_ == f"column {column!r} does not hold {kind} alone: {other}; {AGAIN}"


def test_a_flag_that_is_missing_is_not_taken_as_true(found, tmp_path):
    path = write(found.table.astype({"transfer_is_bound": object}), tmp_path / "table.csv")
    path.write_text(path.read_text().replace("False", "", 1))
    assert "'transfer_is_bound' does not hold bool" in said(path, DECOMPOSITION)


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe\x00", b"PAR1 no longer", b"<html>", b'a,b\n1,2,3\n"'])
def test_damaged_bytes(path, content):
    path.write_bytes(content)
    assert said(path, ITERATIONS).endswith(AGAIN)


def test_a_file_cut_in_the_middle(found, path):
    whole = write(found.ranks, path).read_bytes()
    path.write_bytes(whole[: 10 if path.suffix == ".csv" else len(whole) // 2])  # a CSV's later rows are as good alone
    assert said(path, RANKS).endswith(AGAIN)


def test_no_file(path):
    assert said(path, ITERATIONS) == f"no such file; {AGAIN.replace('make it again', 'make it')}"


def test_a_table_without_rows_is_refused_but_where_it_may_have_none(found, path):
    assert said(write(found.table.iloc[:0], path), DECOMPOSITION) == f"no row; {AGAIN}"
    read = read_table(write(as_table([], RATES), path), RATES)
    assert read.empty
    assert dict(read.dtypes.astype(str)) == dict(as_table([], RATES).dtypes.astype(str))


def test_text_is_kept_as_it_is(path):
    names = ["0", "None", "nan", "", "01", "1e3"]
    rows = [{"section": name, "group": name, "bytes": -1} for name in names]
    frame = read_table(write(filled(rows, PAIRED_COLLECTIVES), path), PAIRED_COLLECTIVES)
    assert list(frame["section"]) == list(frame["group"]) == names


def test_whole_numbers_in_a_column_of_floats(path):
    frame = read_table(
        write(filled([{"section": "s", "span_s": 2}], ITERATIONS).astype({"span_s": int}), path), ITERATIONS
    )
    assert frame["span_s"].tolist() == [2.0]
    assert frame["span_s"].dtype == "float64"


def version_0_1(frame):
    return frame.rename(
        columns=lambda name: name.replace("idle_s", "gap_s").replace("profiling_overhead", "profiling_price")
    )


@pytest.mark.parametrize("table", [RUN_DECOMPOSITION, SCALING])
def test_tables_of_version_0_1_are_refused_with_the_command(table, tmp_path):
    path = write(version_0_1(filled([{"section": "s"}], table)), tmp_path / "old.csv")
    again = "another version of trisect wrote it; make it again: snakemake --forcerun decompose -- report"
    assert said(path, table) == f"no column 'idle_s': {again}"


def test_as_table_orders_and_types_and_names_what_is_missing():
    frame = as_table([dict.fromkeys(reversed(COLLECTIVES), 1)], COLLECTIVES)
    assert list(frame.columns) == list(COLLECTIVES)
    with pytest.raises(KeyError):
        as_table([{"rank": 1}], COLLECTIVES)
