"""Where adding GPUs stops paying, why, and what helps: a finding per experiment, by the rules in docs/report.md."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from trisect.analysis.bootstrap import MIN_ITERATIONS
from trisect.results.notes import Note, note
from trisect.results.tables import PARTS, TIMES, TOTAL, WAIT_CAUSES, RunKey, counts_of

PAYS = 0.80
"""Parallel efficiency from which a GPU count pays."""

MAX_COST = 1 / PAYS
"""Cost up to which a count with enough parallel efficiency pays."""

HALF = 0.50
"""Parallel efficiency below which more GPU time is lost than used."""

NOTABLE_EXCESS = 0.05
"""Smallest growth of a part, as a share of the smallest count's cost, that is named as the reason."""

MAIN_SHARE = 0.50
"""Share of the wait from which one of its causes is named, and of compute's growth from which idle time is."""

ONE_SECTION = 2 / 3
"""Share of a part's growth from which one section is named alone; below it, all with half the largest share are."""

DIVIDES_EVENLY = 0.95
"""Load balance bound from which whole tiles and operators count as evenly divided."""

MAX_PROFILING_OVERHEAD = 1.20
"""Iteration time with the profiler over without, above which the profiler may be what is measured; below its inverse,
something else disturbed the run."""

ALWAYS_SHOWN = ("iterations_skipped", "iterations_dropped", "unattributed", "no_common_clock")
"""Kinds of a run's own notes that are caveats of a finding that rests on the run; the tables carry the others."""


@dataclass(frozen=True)
class Cause:
    """What takes over: the part that grew most at one count, and the sections it grew in."""

    count: int
    part: str  # one of PARTS
    sections: tuple[str, ...]  # the largest first
    share: float  # of all growth of the three parts
    wait_cause: str  # a key of WAIT_CAUSES; "" where it is not wait or the table does not say


@dataclass(frozen=True)
class Finding:
    """What the scaling table of one experiment says, as data; report/text words its notes."""

    experiment: str
    verdict: Note  # up to which count GPUs pay
    largest: pd.Series | None = None  # row TOTAL at the largest fair count; None where nothing can be compared
    pays: int | None = None  # largest fair count at PAYS
    half: int | None = None  # and at HALF
    reason: Note | None = None  # what takes over, and where
    remedy: Note | None = None  # what to do
    next_loss: Note | None = None  # a section that collapses without mattering yet
    caveats: tuple[Note, ...] = ()  # what the data do not carry


def find(scaling: pd.DataFrame, notes: Mapping[RunKey, Sequence[Note]]) -> list[Finding]:
    """A finding per experiment, in the order of tables.SCALING; `notes` are what is known about its runs besides."""
    return [_finding(str(name), rows, notes) for name, rows in scaling.groupby("experiment", sort=False)]


def largest_count(total: pd.DataFrame, threshold: float) -> int | None:
    """The largest count whose parallel efficiency is at least `threshold`; None where no count reaches it."""
    counts = total.loc[total["parallel_efficiency"] >= threshold, "gpus"]
    return None if counts.empty else int(counts.max())


def excess(rows: pd.DataFrame, count: int) -> pd.DataFrame:
    """What each part of each section adds to the cost at `count`: sections x parts.

    (count * part(count) - n0 * part(n0)) / (n0 * span(n0)), span summed over sections; all entries add up to
    cost(count) - 1. n0 is the smallest count.
    """
    columns = [f"{part}_s" for part in PARTS]
    base = int(rows["baseline_gpus"].iloc[0])
    now, before = (rows[rows["gpus"] == n].set_index("section") for n in (count, base))
    grown = count * now[columns] - base * before[columns]
    return (grown / (base * before["span_s"][TOTAL])).drop(TOTAL).set_axis(list(PARTS), axis=1)


def find_cause(rows: pd.DataFrame, count: int) -> Cause | None:
    """The part that grew most at `count`, and where; None where nothing grew by NOTABLE_EXCESS."""
    table = excess(rows, count)
    per_part = table.sum()
    part = str(per_part.idxmax())
    if per_part[part] < NOTABLE_EXCESS:
        return None
    sections = main_sections(table[part])
    share = float(per_part[part] / per_part.clip(lower=0).sum())
    wait_cause = main_wait_cause(_summed(rows, count, sections)) if part == "wait" else ""
    return Cause(count, part, sections, share, wait_cause)


def main_sections(grown: pd.Series) -> tuple[str, ...]:
    """The section that holds ONE_SECTION of a part's growth, else every one with half the largest share."""
    grown = grown.clip(lower=0).sort_values(ascending=False, kind="stable")
    if grown.iloc[0] >= ONE_SECTION * grown.sum():
        return (str(grown.index[0]),)
    return tuple(str(name) for name in grown.index[grown >= grown.iloc[0] / 2])


def main_wait_cause(row: pd.Series) -> str:
    """The cause that makes up at least MAIN_SHARE of a wait, or "" where none does or none is known."""
    main = {
        cause: row[column]
        for cause, column in WAIT_CAUSES.items()
        if row["wait_s"] > 0 and row[column] >= MAIN_SHARE * row["wait_s"]
    }
    return max(main, key=lambda cause: main[cause], default="")


def choose_remedy(cause: Cause, rows: pd.DataFrame) -> str:
    """Which remedy fits the cause: the last word of a kind `remedy_...` in report/text/notes.yaml."""
    now = _summed(rows, cause.count, cause.sections)
    if cause.part == "transfer":
        return "overlap" if now["transfer_s"] < now["compute_max_s"] else "links"
    if cause.part == "compute":
        base = int(rows["baseline_gpus"].iloc[0])
        grown = cause.count * now - base * _summed(rows, base, cause.sections)
        return "launch" if grown["idle_s"] >= MAIN_SHARE * grown["compute_s"] else "repeated"
    if cause.wait_cause == "imbalance":
        return "split" if _bound(rows, cause) < DIVIDES_EVENLY else "rebalance"
    return {"jitter": "jitter", "late start": "late_start"}.get(cause.wait_cause, "wait")


def rivals(rows: pd.DataFrame, cause: Cause) -> list[str]:
    """Parts that may have grown more than the cause: their interval's upper end exceeds its lower end."""
    base = int(rows["baseline_gpus"].iloc[0])
    total = rows[rows["section"] == TOTAL].set_index("gpus")
    now, before = total.loc[cause.count], total.loc[base]
    least = cause.count * now[f"{cause.part}_s_lo"] - base * before[f"{cause.part}_s"]
    others = (part for part in PARTS if part != cause.part)
    return [part for part in others if cause.count * now[f"{part}_s_hi"] - base * before[f"{part}_s"] > least]


def find_caveats(rows: pd.DataFrame, counts: list[int], cause: Cause | None) -> list[Note]:
    """What the rows behind a finding do not carry."""
    used = rows[(rows["section"] == TOTAL) & rows["gpus"].isin(counts)]
    found = []
    for threshold in (PAYS, HALF):
        open_ = used[(used["parallel_efficiency_lo"] < threshold) & (used["parallel_efficiency_hi"] >= threshold)]
        found += _open("efficiency_open", open_, "parallel_efficiency", threshold)
    paying = used[used["parallel_efficiency"] >= PAYS]
    open_ = paying[(paying["cost_lo"] <= MAX_COST) & (paying["cost_hi"] > MAX_COST)]
    found += _open("cost_open", open_, "cost", MAX_COST)
    if cause is not None and (others := rivals(rows, cause)):
        found.append(note("cause_open", part=cause.part, others=others))
    few = used[used["iterations"] < MIN_ITERATIONS]
    if not few.empty:
        found.append(note("few_iterations", count=int(few["iterations"].min()), needed=MIN_ITERATIONS))
    overhead = used["profiling_overhead"]
    flags = {
        "repaired_at": used["repairs"] > 0,
        "profiling_disturbs": overhead > MAX_PROFILING_OVERHEAD,
        "run_disturbed": overhead < 1 / MAX_PROFILING_OVERHEAD,
        "transfer_is_bound": used["transfer_is_bound"].astype(bool) & (cause is not None and cause.part != "compute"),
    }
    limit = MAX_PROFILING_OVERHEAD
    return found + [
        note(kind, counts=counts_of(used.loc[flagged, "gpus"]), limit=limit)
        for kind, flagged in flags.items()
        if flagged.any()
    ]


def _open(kind: str, rows: pd.DataFrame, metric: str, threshold: float) -> list[Note]:
    ends = rows[["gpus", f"{metric}_lo", f"{metric}_hi"]].to_numpy()
    return [note(kind, gpus=int(gpus), threshold=threshold, lo=lo, hi=hi) for gpus, lo, hi in ends]


def _finding(experiment: str, rows: pd.DataFrame, notes: Mapping[RunKey, Sequence[Note]]) -> Finding:
    shared = rows["oversubscribed"].astype(bool)
    over, fair = rows.loc[shared, "gpus"], rows[~shared]
    caveats = [note("oversubscribed", counts=counts_of(over))] if not over.empty else []
    total = fair[fair["section"] == TOTAL].sort_values("gpus")
    if len(total) < 2 or total["gpus"].iloc[0] != rows["baseline_gpus"].iloc[0]:
        return Finding(experiment, note("nothing_to_compare"), caveats=tuple(caveats))
    pays, half = largest_count(total, PAYS), largest_count(total, HALF)
    past = [int(n) for n in total["gpus"] if n > (pays or 0)]
    count = past[0] if past else int(total["gpus"].iloc[-1])
    cause = find_cause(fair, count)
    deciding = sorted({n for n in (pays, half, count) if n})
    caveats += find_caveats(fair, deciding, cause)
    caveats += [one for n in deciding for one in _of_run(notes.get((experiment, n), ()), n, cause)]
    return Finding(
        experiment,
        _verdict(total, pays, half),
        total.iloc[-1],
        pays,
        half,
        _reason(cause, total.set_index("gpus")["cost"], count, bool(past)),
        _remedy(fair, cause),
        _next_loss(fair, int(total["gpus"].iloc[-1])),
        tuple(caveats),
    )


def _verdict(total: pd.DataFrame, pays: int | None, half: int | None) -> Note:
    last = total.iloc[-1]
    efficiency = total.set_index("gpus")["parallel_efficiency"]
    values = {
        "last": int(last["gpus"]),
        "first": int(total["gpus"].iloc[0]),
        "efficiency": float(last["parallel_efficiency"]),
        "cost": float(last["cost"]),
        "speedup": float(last["speedup"]),
        "ideal": float(last["gpus"] / last["baseline_gpus"]),
        "threshold": PAYS,
        "half_level": HALF,
        "half": half if half is not None and half < last["gpus"] else None,
        "pays": pays,
        "pays_efficiency": None if pays is None else float(efficiency[pays]),
    }
    if pays == last["gpus"]:
        return note("busy_but_costly" if last["cost"] > MAX_COST else "pays_at_all_counts", **values)
    if pays is None:
        return note("pays_at_no_count", **values)
    return note("pays_at_first_only" if pays == values["first"] else "pays_up_to", **values)


def _reason(cause: Cause | None, cost: pd.Series, count: int, past: bool) -> Note:
    if cost[count] < 1 and not past:
        return note("cheaper_than_baseline", gpus=count, cost=float(cost[count]), first=int(cost.index[0]))
    if cause is None:
        return note("nothing_lost")
    about = {"part": cause.part, "sections": list(cause.sections), "share": cause.share, "wait_cause": cause.wait_cause}
    return note("takes_over" if past else "largest_loss", gpus=cause.count, **about)


def _remedy(rows: pd.DataFrame, cause: Cause | None) -> Note:
    if cause is None:
        return note("remedy_none")
    return note(f"remedy_{choose_remedy(cause, rows)}", gpus=cause.count, bound=_bound(rows, cause))


def _next_loss(rows: pd.DataFrame, count: int) -> Note | None:
    """The section whose load balance is below HALF where that of all together still is PAYS or more."""
    now = rows[rows["gpus"] == count].set_index("section")
    combined, sections = now.loc[TOTAL], now.drop(TOTAL).sort_values("load_balance")
    if sections.empty or not (sections["load_balance"].iloc[0] < HALF and combined["load_balance"] >= PAYS):
        return None
    worst, whole = sections.iloc[0].to_dict(), combined.to_dict()
    values = {"load_balance": worst["load_balance"], "combined": whole["load_balance"]}
    share = worst["span_s"] / whole["span_s"]
    return note("next_loss", gpus=count, section=str(sections.index[0]), share=share, **values)


def _of_run(notes: Sequence[Note], gpus: int, cause: Cause | None) -> list[Note]:
    """A run's own notes that bear on a finding."""
    late = cause.sections if cause and cause.part == "wait" and cause.wait_cause in ("late start", "") else ()
    return [
        note(one.kind, **one.values | {"gpus": gpus})
        for one in notes
        if one.kind in ALWAYS_SHOWN or (one.kind == "late_start_uncertain" and one.values["section"] in late)
    ]


def _summed(rows: pd.DataFrame, count: int, sections: tuple[str, ...]) -> pd.Series:
    """The times of some sections at one count, added up."""
    chosen = rows[(rows["gpus"] == count) & rows["section"].isin(sections)]
    return chosen[list(TIMES)].sum(min_count=1)


def _bound(rows: pd.DataFrame, cause: Cause) -> float:
    """The lowest load balance bound of the cause's sections."""
    chosen = rows[(rows["gpus"] == cause.count) & rows["section"].isin(cause.sections)]
    return float(chosen["load_balance_bound"].min())
