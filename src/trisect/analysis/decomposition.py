"""One job's tables into compute, transfer and wait: docs/metrics.md, carried out."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from trisect.analysis import bootstrap, caveats, clocks, pairing, pop, waits
from trisect.errors import TrisectError
from trisect.results import tables
from trisect.results.notes import Note
from trisect.results.tables import TOTAL, Trace, Values


@dataclass(frozen=True)
class Decomposition:
    """Where a job's time went. All times in seconds."""

    table: pd.DataFrame  # tables.DECOMPOSITION: one row a section, and TOTAL
    collectives: pd.DataFrame  # tables.PAIRED_COLLECTIVES: one row per iteration, section and paired collective
    iterations: pd.DataFrame  # iteration, section and tables.PER_ITERATION: one row per iteration and section
    ranks: pd.DataFrame  # tables.RANKS: one row per rank, iteration and section
    caveats: list[Note]  # what was repaired, left out or is doubtful
    clock_residual_s: float  # of the alignment; NaN where there was nothing to align by


def decompose(trace: Trace) -> Decomposition:
    """Cut every section of every iteration of a job, all of its ranks, into compute, transfer and wait.

    Raises:
        TrisectError: the ranks share no iteration, a section or collective is not on all ranks that should have it,
            or more communication than time in a section.
    """
    trace, dropped = pairing.share_iterations(trace)
    names = list(dict.fromkeys(trace.sections.sort_values(["rank", "start_ns"])["section"]))
    if TOTAL in names:
        raise TrisectError(f"a section is named {TOTAL!r}, as the row of all sections is; give it another name")
    world_size = int(trace.readings["rank"].nunique())
    paired, outside = pairing.pair(trace.collectives, world_size)
    exposed = waits.expose(paired, trace.sections)
    clock = clocks.align(pd.concat([paired, outside]), world_size)
    per_rank = _per_rank(trace.sections, exposed)
    steps = pd.Index(sorted(per_rank["iteration"].unique()))
    slots = waits.slots(exposed, steps, world_size)
    iterations = _per_iteration(per_rank, steps, slots)
    table = _table(iterations, names, slots, exposed, trace.readings, clock is not None)
    found = caveats.caveats(trace, exposed, iterations, clock, world_size)
    return Decomposition(
        table=table,
        collectives=_collectives(exposed, clock),
        iterations=iterations,
        ranks=_seconds(per_rank)[list(tables.RANKS)],
        caveats=dropped + found,
        clock_residual_s=clock.residual_ns / 1e9 if clock else float("nan"),
    )


def _per_rank(sections: pd.DataFrame, exposed: pd.DataFrame) -> pd.DataFrame:
    """Nanoseconds per rank, iteration and section, occurrences summed."""
    key = ["rank", "iteration", "section"]
    frame = (
        sections.assign(span_ns=sections["end_ns"] - sections["start_ns"]).groupby(key)[["span_ns", "busy_ns"]].sum()
    )
    spent = exposed.groupby(key)[["exposed_ns", "transfer_ns", "wait_ns", "hidden_ns"]].sum()
    frame = frame.join(spent).fillna(0).astype("int64").reset_index()
    frame["compute_ns"] = frame["span_ns"] - frame.pop("exposed_ns")
    frame["idle_ns"] = frame["compute_ns"] - frame["busy_ns"]
    impossible = frame[frame["compute_ns"] < 0]
    if len(impossible):
        rank, iteration, section = impossible.iloc[0][key]
        raise TrisectError(
            f"rank {rank}, iteration {iteration}, section {section!r}: its collectives last longer than the section;"
            " its trace is damaged, record it again"
        )
    return frame


def _seconds(frame: pd.DataFrame) -> pd.DataFrame:
    """Every `_ns` column as `_s`."""
    names = [name for name in frame.columns if name.endswith("_ns")]
    return frame.drop(columns=names).join((frame[names] / 1e9).rename(columns=lambda name: name[:-3] + "_s"))


def _per_iteration(per_rank: pd.DataFrame, steps: pd.Index, slots: dict[str, list[waits.Slot]]) -> pd.DataFrame:
    """A row of tables.PER_ITERATION per iteration and section; zeros where an iteration lacks a section of others.

    What ranks have too is the mean over them; the rest follows below.
    """
    by = per_rank.groupby(["iteration", "section"])
    frame = by[[f"{name[:-2]}_ns" for name in tables.PER_ITERATION if f"{name[:-2]}_ns" in per_rank]].mean()
    frame["compute_max_ns"] = by["compute_ns"].max()
    every = pd.MultiIndex.from_product([steps, per_rank["section"].unique()], names=["iteration", "section"])
    frame = _seconds(frame.reindex(every, fill_value=0)).reset_index()
    together = {
        name: pd.Series(waits.arrival_spread(slots.get(name, []), len(steps)), index=steps)
        for name in frame["section"].unique()
    }
    at = pd.MultiIndex.from_frame(frame[["section", "iteration"]])
    frame["wait_late_start_s"] = frame["wait_s"] - pd.concat(together).reindex(at).to_numpy()
    return frame


def _table(
    iterations: pd.DataFrame,
    names: list[str],
    slots: dict[str, list[waits.Slot]],
    exposed: pd.DataFrame,
    readings: pd.DataFrame,
    aligned: bool,
) -> pd.DataFrame:
    world_size, count = int(readings["rank"].nunique()), iterations["iteration"].nunique()
    device = int(readings["device_ns"].sum())
    common = {
        "gpus": world_size,
        "iterations": count,
        "unattributed_share": readings["unattributed_ns"].sum() / device if device else 0.0,
        "repairs": int(readings["repairs"].sum()),
    }
    rows = []
    for name in [*names, TOTAL]:
        parts = names if name == TOTAL else [name]
        of_parts = iterations[iterations["section"].isin(parts)]
        means = of_parts.groupby("iteration")[list(tables.PER_ITERATION)].sum().to_numpy()
        arrivals = [slot for part in parts for slot in slots.get(part, [])]
        collectives = exposed[exposed["section"].isin(parts)]
        if not aligned and collectives["paired"].any() and world_size > 1:
            means[:, tables.PER_ITERATION.index("wait_late_start_s")] = np.nan
        row = {"section": name, **_estimates(means, arrivals), **_traffic(collectives, world_size, count), **common}
        rows.append(row)
    return pd.DataFrame(rows)[list(tables.DECOMPOSITION)]


def _estimates(means: Values, arrivals: list[waits.Slot]) -> dict[str, float]:
    """TIMES and EFFICIENCIES with their bounds; `means` holds PER_ITERATION, one row an iteration."""

    def statistic(weights: Values) -> Values:
        times = dict(zip(tables.PER_ITERATION, (weights @ means).T, strict=True))
        times["wait_imbalance_s"] = waits.imbalance(arrivals, weights)
        jitter = weights @ spread_of_arrivals - times["wait_imbalance_s"]
        times["wait_jitter_s"] = np.maximum(jitter, 0)  # it is never negative but by rounding
        values = times | pop.efficiencies(times)
        return np.array([values[name] for name in (*tables.TIMES, *tables.EFFICIENCIES)])

    spread_of_arrivals = waits.arrival_spread(arrivals, len(means))
    return bootstrap.estimates((*tables.TIMES, *tables.EFFICIENCIES), statistic, len(means))


def _traffic(collectives: pd.DataFrame, world_size: int, iterations: int) -> dict[str, float | bool]:
    known = collectives["bytes"].clip(lower=0).sum()
    return {
        "collectives": len(collectives) / world_size / iterations,
        "payload_bytes": known / world_size / iterations,
        "transfer_is_bound": bool(caveats.bounded(collectives).any()),
    }


def _collectives(exposed: pd.DataFrame, clock: clocks.Clocks | None) -> pd.DataFrame:
    last = exposed.sort_values(["exposed_ns", "rank"]).drop_duplicates("pair").set_index("pair")
    by_pair = exposed.groupby("pair")
    frame = last[["iteration", "section", "op", "group", "group_size"]].assign(
        bytes=by_pair["bytes"].max(),
        transfer_s=last["exposed_ns"] / 1e9,
        mean_wait_s=by_pair["wait_ns"].mean() / 1e9,
        max_wait_s=by_pair["wait_ns"].max() / 1e9,
        last_rank=last["rank"],
        end_spread_s=clocks.end_spread(exposed, clock) if clock else np.nan,
    )
    return frame.sort_values(["iteration", "pair"]).reset_index(drop=True)[list(tables.PAIRED_COLLECTIVES)]
