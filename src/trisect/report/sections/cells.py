"""The scaling table of one experiment as cells: what a reader sees, what a sort and a copy use."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from trisect import wording
from trisect.analysis.caveats import UNATTRIBUTED_LIMIT
from trisect.report.figures.style import sections_of
from trisect.report.text.note_words import all_in_words, in_words
from trisect.results.notes import note
from trisect.results.tables import EFFICIENCIES, SCALING, TIMES, TOTAL


class Cell(NamedTuple):
    """One number of a table."""

    shown: str
    spread: str = ""  # the interval, as text
    value: str = ""  # full precision


class Row(NamedTuple):
    """One row of a Grid: a count, what it is about in words, and its numbers."""

    experiment: str
    section: str
    gpus: int
    oversubscribed: bool
    names: list[str]
    cells: list[Cell]


class Grid(NamedTuple):
    """A plain table by count."""

    names: list[str]  # headings of words
    titles: list[str]  # headings of numbers
    rows: list[Row]


def _plain(value: Any, _: Any) -> tuple[str, str]:
    if isinstance(value, bool):
        return "yes" if value else "no", ""
    return f"{value:g}", ""


plain = wording.Form(_plain)
"""Any value as it is."""

NumberColumns = Mapping[str, tuple[str, wording.Form]]
"""Columns of numbers: title and form, by name."""

MAIN: NumberColumns = {
    "span_s": ("span", wording.seconds),
    "speedup": ("speedup of ideal", wording.times),
    "compute_s": ("compute", wording.seconds),
    "transfer_s": ("transfer", wording.seconds),
    "wait_s": ("wait", wording.seconds),
    "load_balance": ("load balance", wording.percent),
    "comm_efficiency": ("comm. efficiency", wording.percent),
    "parallel_efficiency": ("parallel efficiency", wording.percent),
    "comp_scaling": ("compute scaling", wording.percent),
    "global_efficiency": ("global efficiency", wording.percent),
    "cost": ("cost", wording.times),
}
"""Columns of the main table: title and form."""

_FORMS: dict[str, wording.Form] = {
    **dict.fromkeys(TIMES, wording.seconds),
    **dict.fromkeys((*EFFICIENCIES, "comp_scaling", "global_efficiency", "untiled_efficiency"), wording.percent),
    **dict.fromkeys(("load_balance_bound", "unattributed_share"), wording.percent),
    **dict.fromkeys(("cost", "speedup", "profiling_overhead", "tile_work"), wording.times),
    **dict.fromkeys(("payload_bytes", "peak_memory_bytes"), wording.size),
}


def main_table(rows: pd.DataFrame) -> Grid:
    """Rows by count, sections first and their total last, with the columns of MAIN; speedup beside its ideal."""
    order = [*sections_of(rows), TOTAL]
    ordered = rows.assign(place=rows["section"].map(order.index)).sort_values(["gpus", "place"])
    of_ideal = zip(ordered["speedup"], ordered["gpus"] / ordered["baseline_gpus"], strict=True)
    said = ["" if pd.isna(one) else in_words(note("speedup_of_ideal", speedup=one, ideal=n)) for one, n in of_ideal]
    return grid(ordered.assign(speedup_shown=said), {"section": "section"}, MAIN)


def all_columns(rows: pd.DataFrame) -> dict[str, dict[str, list[Cell]]]:
    """Per section, every column of tables.SCALING, by its name, across the counts."""
    names = [name for name in SCALING if name not in ("experiment", "section", "gpus")]
    bounds = {f"{name}{end}" for name in names for end in ("_lo", "_hi")}
    by_count = rows.sort_values("gpus")
    return {
        section: {
            name: [
                _cell(row, name, _FORMS.get(name, plain))
                for row in by_count[by_count["section"] == section].to_dict("records")
            ]
            for name in names
            if name not in bounds
        }
        for section in [*sections_of(rows), TOTAL]
    }


def grid(rows: pd.DataFrame, names: Mapping[str, str], columns: NumberColumns) -> Grid:
    """Rows as they come, without the columns of numbers that hold none.

    Args:
        rows: with `gpus`, and `experiment`, `section` and `oversubscribed` where it has them. NAME_shown and
            NAME_spread, where it has them, say how a number of column NAME and its interval are shown.
        names: headings of the columns of words, by column.
        columns: the columns of numbers.
    """
    used = {name: spec for name, spec in columns.items() if rows[name].notna().any()}
    made = [
        Row(
            str(row.get("experiment", "")),
            str(row.get("section", "")),
            int(row["gpus"]),
            bool(row.get("oversubscribed", False)),
            [str(row[name]) for name in names],
            [_cell(row, name, form) for name, (_, form) in used.items()],
        )
        for row in rows.to_dict("records")
    ]
    return Grid(list(names.values()), [title for title, _ in used.values()], made)


def table_notes(rows: pd.DataFrame, unit: str = "GPU") -> list[str]:
    """What a reader of the table has to know beside its numbers, a sentence each."""
    sections = rows[rows["section"] != TOTAL]
    bound = sections.loc[sections["transfer_is_bound"].astype(bool), "section"].unique().tolist()
    repaired = sections.loc[sections["repairs"] > 0, "gpus"].unique().tolist()
    stray = sections.loc[sections["unattributed_share"] > UNATTRIBUTED_LIMIT, "gpus"].unique().tolist()
    found = [
        note("rooted_in_table", sections=bound) if bound else None,
        note("repaired_at", counts=repaired) if repaired else None,
        note("unattributed_in_table", counts=stray, limit=UNATTRIBUTED_LIMIT) if stray else None,
    ]
    return all_in_words(filter(None, found), unit)


def _cell(row: Mapping[Any, Any], name: str, form: wording.Form) -> Cell:
    value, lo, hi = (row.get(f"{name}{end}", math.nan) for end in ("", "_lo", "_hi"))
    return Cell(
        row.get(f"{name}_shown") or form(value),
        row.get(f"{name}_spread") or form.interval(value, lo, hi),
        "" if pd.isna(value) else str(value),
    )
