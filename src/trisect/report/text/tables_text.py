"""Tables as aligned text for a terminal."""

from collections.abc import Hashable, Iterable
from typing import Any

import pandas as pd

from trisect import wording
from trisect.analysis.differences import BETTER, COMPARED_TIMES, NOISE, UNTESTED, WORSE, Comparison
from trisect.report.text.note_words import all_in_words
from trisect.results.notes import note
from trisect.results.tables import TOTAL, RunKey


def aligned(table: pd.DataFrame) -> list[str]:
    """A table as lines; numbers to 4 significant digits, and whole from there on."""
    if table.empty:
        return []
    return table.to_string(index=False, na_rep=wording.NO_NUMBER, float_format=_number).splitlines()


def _number(value: float) -> str:
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"


def rates_text(rates: pd.DataFrame) -> list[str]:
    """Implied rates (tables.RATES) of one experiment, without what nothing is known of."""
    unknown = [name for name in ("machine_gb_per_s", "probed_gb_per_s") if rates[name].isna().all()]
    hidden = ["experiment", "hidden_s", "iterations", "oversubscribed", "cut_lines", *unknown]
    shown = rates.assign(off=rates["off"].map(wording.signed_percent)).drop(columns=hidden)
    return aligned(shown.rename(columns={"reading": "assumed", "off": "error"}))


def comparison_text(comparison: Comparison) -> list[str]:
    """The span of every run and what differs beyond noise as a table, then how many differences of which kind."""
    rows = [_difference(row) for row in main_differences(comparison.table).to_dict("records")]
    return [*aligned(pd.DataFrame(rows)), *_summary(comparison)]


def main_differences(table: pd.DataFrame) -> pd.DataFrame:
    """Of tables.COMPARISON, the span of every run and what differs beyond noise."""
    beyond = table["verdict"].isin([WORSE, BETTER])
    return table[beyond | ((table["section"] == TOTAL) & (table["metric"] == "span_s"))]


def _difference(row: dict[Hashable, Any]) -> dict[str, object]:
    """A row of tables.COMPARISON as people read it."""
    is_time = row["metric"] in COMPARED_TIMES
    form, change = (wording.seconds, wording.seconds) if is_time else (wording.percent, wording.points)
    ends = change.interval(row["difference"], row["difference_lo"], row["difference_hi"])
    return {
        "run": run_name((row["experiment"], row["gpus"])),
        "section": row["section"],
        "metric": wording.metric(row["metric"]),
        "before": form(row["before"]),
        "after": form(row["after"]),
        "difference": change(row["difference"]),
        "95 % interval": ends or wording.NO_NUMBER,
        "of span": wording.signed_percent(row["change"]) if is_time else wording.NO_NUMBER,
        "verdict": row["verdict"],
    }


def _summary(comparison: Comparison) -> list[str]:
    """How many differences of which kind there are, what changed, and which runs are on one side only, as sentences."""
    counts = comparison.table["verdict"].value_counts()
    verdicts = [
        {"verdict": kind, "count": int(counts[kind])} for kind in (WORSE, BETTER, NOISE, UNTESTED) if kind in counts
    ]
    before, after = comparison.folders
    notes = [note("compared", before=before, after=after, count=len(comparison.table), verdicts=verdicts)]
    notes += comparison.changed
    for runs, side in ((comparison.only_before, "before"), (comparison.only_after, "after")):
        notes += [note("only_on_one_side", side=side, runs=[run_name(run) for run in runs])] if runs else []
    return all_in_words(notes)


def run_names(runs: Iterable[RunKey]) -> str:
    """Runs in words, by experiment and count."""
    return wording.listed(run_name(run) for run in sorted(runs))


def run_name(run: RunKey) -> str:
    """A run in words; one that `trisect decompose` made has no experiment's name."""
    experiment, gpus = run
    return f"{experiment} at {gpus}" if experiment else f"a job of {wording.counted(gpus, 'rank')}"
