"""Tables as aligned text for a terminal."""

from __future__ import annotations

import pandas as pd

from trisect import wording
from trisect.analysis.differences import BETTER, NOISE, UNTESTED, WORSE, Comparison, RunKey
from trisect.report.text.notes import all_in_words
from trisect.results.notes import note
from trisect.results.tables import TOTAL


def aligned(table: pd.DataFrame, figures: int = 4) -> list[str]:
    """A table as lines; numbers to so many significant digits."""
    return (
        table.to_string(index=False, float_format=lambda value: f"{value:.{figures}g}").splitlines()
        if len(table)
        else []
    )


def rates_text(rates: pd.DataFrame) -> list[str]:
    """Implied rates (tables.RATES) of one experiment, without what nothing is known of."""
    unknown = [name for name in ("machine_gb_per_s", "probed_gb_per_s") if rates[name].isna().all()]
    hidden = ["experiment", "hidden_s", "iterations", "oversubscribed", "cut_lines", *unknown]
    return aligned(rates.assign(off=rates["off"].map("{:+.1%}".format)).drop(columns=hidden))


def comparison_text(comparison: Comparison) -> list[str]:
    """The span of every run and what differs beyond noise as a table, then how many differences of which kind."""
    table = comparison.table
    beyond = table["verdict"].isin([WORSE, BETTER])
    whole = (table["section"] == TOTAL) & (table["metric"] == "span_s")
    return [*aligned(table.loc[beyond | whole].drop(columns="p_adjusted"), 3), *summary(comparison)]


def summary(comparison: Comparison) -> list[str]:
    """How many differences of which kind there are, what changed, and which runs stand alone: a sentence each."""
    counts = comparison.table["verdict"].value_counts()
    verdicts = [
        {"verdict": kind, "count": int(counts[kind])} for kind in (WORSE, BETTER, NOISE, UNTESTED) if kind in counts
    ]
    notes = [note("compared", count=len(comparison.table), verdicts=verdicts), *comparison.changed]
    for runs, side in ((comparison.only_before, "before"), (comparison.only_after, "after")):
        notes += [note("only_on_one_side", side=side, runs=[run_name(run) for run in runs])] if runs else []
    return all_in_words(notes)


def run_name(run: RunKey) -> str:
    """A run in words."""
    experiment, gpus = run
    return f"{experiment or 'a job'} at {wording.counted(gpus, 'rank') if not experiment else gpus}"
