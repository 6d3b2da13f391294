"""Where adding GPUs stops paying, why, and what to do: a finding per experiment, by the rules in docs/report.md."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from trisect.report import numbers
from trisect.tables import TIMES, TOTAL

PAYS = 0.80
"""Parallel efficiency from which a GPU count pays."""

MAX_COST = 1 / PAYS
"""Cost up to which a count with enough parallel efficiency pays."""

HALF = 0.50
"""Parallel efficiency below which more GPU time is lost than used."""

NOTABLE_EXCESS = 0.05
"""Smallest growth of a part, as a share of the smallest count's cost, that is named as the reason."""

MAIN_SHARE = 0.50
"""Share of the wait from which one of its causes is named, and of compute's growth from which idle gaps are."""

ONE_SECTION = 2 / 3
"""Share of a part's growth from which one section is named alone; below it, all with half the largest share are."""

DIVIDES_EVENLY = 0.95
"""Load balance bound from which whole tiles and operators count as evenly divided."""

MIN_ITERATIONS = 5
"""Fewer iterations than this carry no statement on their own."""

MAX_PROFILING_PRICE = 1.20
"""Iteration time with the profiler over without, above which the profiler may be what is measured; below its inverse,
something else disturbed the run."""

PARTS = ("compute", "transfer", "wait")
WAIT_CAUSES = {"imbalance": "wait_imbalance_s", "jitter": "wait_jitter_s", "late start": "wait_late_start_s"}

REMEDIES = {
    "split": "split the operators or tiles more finely: dealt whole, they allow a load balance of {bound} at {count}",
    "rebalance": "rebalance: the same ranks are late in every iteration, while whole operators or tiles allow a load "
    "balance of {bound} at {count}; look for slower devices, and tiles or operators of unequal cost",
    "jitter": "rebalancing will not help, since other ranks are late each time: give each {unit} more work, "
    "overlap the collectives with compute, or look for other load on the hosts",
    "late start": "ranks enter the section late: shorten or balance what runs between the sections",
    "wait": "rebalance tiles or operators first; the tables do not say which kind of wait it is",
    "overlap": "give each {unit} more work (a bigger problem) or overlap the transfer with compute; "
    "faster links help as well",
    "links": "a bigger problem, less data per collective or faster links: the transfer takes at least as long as the "
    "compute there, so that overlap alone cannot hide it",
    "launch": "the devices idle between operations more and more: give each {unit} more work, or launch fewer and "
    "larger operations",
    "repeated": "look for work that every {unit} repeats, such as the overlap of tiles (larger tiles repeat less), and "
    "for {unit}s that slow each other down, such as through a host's memory",
}
"""What to do, by cause; docs/report.md says when each applies."""


@dataclass(frozen=True)
class Cause:
    """What takes over: the part that grew most at one count, and the sections it grew in."""

    count: int
    part: str  # compute, transfer or wait
    sections: tuple[str, ...]  # the largest first
    excess: float  # its growth, in units of the smallest count's cost
    share: float  # of all growth of the three parts
    wait_cause: str  # imbalance, jitter, late start; "" where it is not wait or the table does not say


@dataclass(frozen=True)
class Finding:
    """What the scaling table of one experiment says."""

    experiment: str
    verdict: str  # up to which count GPUs pay
    reason: str  # what takes over, and where; "" where there is nothing to explain
    remedy: str  # what to do; "" where there is no reason
    doubts: tuple[str, ...]  # what the data do not carry


def find(scaling: pd.DataFrame, unit: str = "GPU") -> list[Finding]:
    """A finding per experiment, in the table's order.

    Args:
        scaling: rows of tables.SCALING.
        unit: what is counted, in the singular: "GPU", or "rank" where the ranks ran on CPUs.
    """
    return [_finding(str(name), rows, unit) for name, rows in scaling.groupby("experiment", sort=False)]


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
    return Cause(count, part, sections, float(per_part[part]), share, wait_cause)


def main_sections(grown: pd.Series) -> tuple[str, ...]:
    """The section that holds ONE_SECTION of a part's growth, else every one with half the largest share."""
    grown = grown.clip(lower=0).sort_values(ascending=False, kind="stable")
    if grown.iloc[0] >= ONE_SECTION * grown.sum():
        return (str(grown.index[0]),)
    return tuple(str(name) for name in grown.index[grown >= grown.iloc[0] / 2])


def main_wait_cause(row: pd.Series) -> str:
    """The cause that makes up at least MAIN_SHARE of a wait, or "" where none does or none is known."""
    shares = {cause: row[column] / row["wait_s"] for cause, column in WAIT_CAUSES.items() if row["wait_s"] > 0}
    known = {cause: share for cause, share in shares.items() if not math.isnan(share)}
    cause = max(known, key=lambda name: known[name], default="")
    return cause if cause and known[cause] >= MAIN_SHARE else ""


def choose_remedy(cause: Cause, rows: pd.DataFrame) -> str:
    """Key of REMEDIES that fits the cause."""
    now = _summed(rows, cause.count, cause.sections)
    if cause.part == "transfer":
        return "overlap" if now["transfer_s"] < now["compute_max_s"] else "links"
    if cause.part == "compute":
        base = int(rows["baseline_gpus"].iloc[0])
        grown = cause.count * now - base * _summed(rows, base, cause.sections)
        return "launch" if grown["gap_s"] >= MAIN_SHARE * grown["compute_s"] else "repeated"
    if cause.wait_cause == "imbalance":
        return "split" if _bound(rows, cause) < DIVIDES_EVENLY else "rebalance"
    return cause.wait_cause or "wait"


def rivals(rows: pd.DataFrame, cause: Cause) -> list[str]:
    """Parts that may have grown more than the cause: their interval's upper end exceeds its lower end."""
    base = int(rows["baseline_gpus"].iloc[0])
    total = rows[rows["section"] == TOTAL].set_index("gpus")
    now, before = total.loc[cause.count], total.loc[base]
    least = cause.count * now[f"{cause.part}_s_lo"] - base * before[f"{cause.part}_s"]
    others = (part for part in PARTS if part != cause.part)
    return [part for part in others if cause.count * now[f"{part}_s_hi"] - base * before[f"{part}_s"] > least]


def find_doubts(rows: pd.DataFrame, counts: list[int], cause: Cause | None, unit: str = "GPU") -> list[str]:
    """What the rows behind a finding do not carry, a sentence each."""
    used = rows[(rows["section"] == TOTAL) & rows["gpus"].isin(counts)]
    doubts = []
    for threshold in (PAYS, HALF):
        open_ = used[(used["parallel_efficiency_lo"] < threshold) & (used["parallel_efficiency_hi"] >= threshold)]
        for row in open_.to_dict("records"):
            lo, hi = row["parallel_efficiency_lo"], row["parallel_efficiency_hi"]
            bounds = f"{numbers.percent(lo)} to {numbers.percent(hi)}"
            asked = f"{_count(row['gpus'], unit)} reach {numbers.percent(threshold)} parallel efficiency"
            doubts.append(f"It is open whether {asked}: the 95 % interval is {bounds}.")
    paying = used[used["parallel_efficiency"] >= PAYS]
    for row in paying[(paying["cost_lo"] <= MAX_COST) & (paying["cost_hi"] > MAX_COST)].to_dict("records"):
        bounds = f"{numbers.digits(row['cost_lo'])} to {numbers.digits(row['cost_hi'])}"
        asked = f"{_count(row['gpus'], unit)} cost more than {MAX_COST:g} times the smallest count"
        doubts.append(f"It is open whether {asked}: the 95 % interval is {bounds}.")
    if cause is not None and (others := rivals(rows, cause)):
        doubts.append(
            f"It is open whether {cause.part} or {' or '.join(others)} is the larger loss: intervals overlap."
        )
    few = used[used["iterations"] < MIN_ITERATIONS]
    if not few.empty:
        doubts.append(
            f"Too few iterations to be sure: {few['iterations'].min()}, where {MIN_ITERATIONS} are asked for."
        )
    bound_matters = cause is not None and cause.part != "compute"
    flags = {
        "Traces were repaired at {counts}: these numbers rest on mended values.": used["repairs"] > 0,
        f"Profiling makes iterations more than {MAX_PROFILING_PRICE:g} times as long at {{counts}}, "
        "and may be what is measured.": used["profiling_price"] > MAX_PROFILING_PRICE,
        f"Iterations without the profiler took more than {MAX_PROFILING_PRICE:g} times as long as with it at "
        "{counts}: something else disturbed the run.": used["profiling_price"] < 1 / MAX_PROFILING_PRICE,
        "Transfer is a lower bound at {counts}, since a rooted collective takes part: some of the wait may be "
        "transfer.": used["transfer_is_bound"].astype(bool) & bound_matters,
    }
    for sentence, flagged in flags.items():
        if flagged.any():
            doubts.append(sentence.format(counts=_counts(used.loc[flagged, "gpus"], unit)))
    return doubts


def _finding(experiment: str, rows: pd.DataFrame, unit: str) -> Finding:
    shared = rows["oversubscribed"].astype(bool)
    over, fair = rows.loc[shared, "gpus"], rows[~shared]
    doubts = []
    if not over.empty:
        counts = _counts(over.unique(), unit)
        doubts.append(f"Oversubscribed: {counts} shared cores, which is slower but no loss of scaling; left out here.")
    total = fair[fair["section"] == TOTAL].sort_values("gpus")
    if len(total) < 2 or total["gpus"].iloc[0] != rows["baseline_gpus"].iloc[0]:
        verdict = f"Nothing to compare: fewer than two counts of {unit}s ran on resources of their own."
        return Finding(experiment, verdict, "", "", tuple(doubts))
    pays, half = largest_count(total, PAYS), largest_count(total, HALF)
    past = [int(n) for n in total["gpus"] if n > (pays or 0)]
    count = past[0] if past else int(total["gpus"].iloc[-1])
    cause = find_cause(fair, count)
    deciding = sorted({n for n in (pays, half, count) if n})
    doubts += find_doubts(fair, deciding, cause, unit)
    reason = _reason(cause, unit, bool(past))
    return Finding(experiment, _verdict(total, pays, half, unit), reason, _remedy(fair, cause, unit), tuple(doubts))


def _verdict(total: pd.DataFrame, pays: int | None, half: int | None, unit: str) -> str:
    last = int(total["gpus"].iloc[-1])
    efficiency = total.set_index("gpus")["parallel_efficiency"].map(numbers.percent)
    price = f"the same work costs {numbers.digits(total['cost'].iloc[-1])} times the {unit}-seconds"
    units = f"{unit[:1].upper()}{unit[1:]}s"
    if pays == last and total["cost"].iloc[-1] > MAX_COST:
        return f"{units} stay busy up to {last} (parallel efficiency {efficiency[last]}), but {price} there."
    if pays == last:
        return f"{units} pay at all counts up to {last}: parallel efficiency {efficiency[last]}, and {price} there."
    below = f", below {numbers.percent(HALF)} past {half}" if half is not None and half < last else ""
    tail = f"at {last} it is {efficiency[last]}{below}, and {price}."
    if pays == int(total["gpus"].iloc[0]):
        lost = f"parallel efficiency is {efficiency[last]} at {last}{below}, and {price}."
        return f"Adding {unit}s does not pay past the smallest count, {pays}: {lost}"
    if pays is None:
        return f"No count reaches a parallel efficiency of {numbers.percent(PAYS)}: {tail}"
    return f"{units} pay up to {pays} (parallel efficiency {efficiency[pays]}); {tail}"


def _reason(cause: Cause | None, unit: str, past: bool) -> str:
    if cause is None:
        return "Nothing of note is lost so far: compute, transfer and wait together cost about what they cost at first."
    kind = f" (mainly {cause.wait_cause})" if cause.wait_cause else ""
    where = f"in {numbers.listed(list(cause.sections))}"
    amount = f"{numbers.percent(cause.share)} of what is lost at {_count(cause.count, unit)} against the smallest count"
    if not past:
        return f"The largest part of what is lost so far is {cause.part}{kind}, {where}: {amount}."
    return f"{cause.part.capitalize()} takes over{kind}, {where}: {amount}."


def _remedy(rows: pd.DataFrame, cause: Cause | None, unit: str) -> str:
    if cause is None:
        return f"nothing to gain here; more {unit}s can be tried"
    wording = REMEDIES[choose_remedy(cause, rows)]
    return wording.format(bound=numbers.percent(_bound(rows, cause)), count=_count(cause.count, unit), unit=unit)


def _summed(rows: pd.DataFrame, count: int, sections: tuple[str, ...]) -> pd.Series:
    """The times of some sections at one count, added up."""
    chosen = rows[(rows["gpus"] == count) & rows["section"].isin(sections)]
    return chosen[list(TIMES)].sum(min_count=1)


def _bound(rows: pd.DataFrame, cause: Cause) -> float:
    """The lowest load balance bound of the cause's sections."""
    chosen = rows[(rows["gpus"] == cause.count) & rows["section"].isin(cause.sections)]
    return float(chosen["load_balance_bound"].min())


def _count(count: int, unit: str) -> str:
    return f"{count} {unit}{'s' if count != 1 else ''}"


def _counts(counts: Iterable[int], unit: str) -> str:
    values = sorted(int(count) for count in counts)
    return numbers.listed([str(n) for n in values]) + f" {unit}{'s' if values != [1] else ''}"
