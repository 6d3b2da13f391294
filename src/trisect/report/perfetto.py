"""A timeline as a file that Perfetto (ui.perfetto.dev) and chrome://tracing open.

The format: "Trace Event Format", catapult project. One process per iteration, one thread per rank; a slice per
section, and in it compute, wait and transfer; a flow joins the ranks of a collective in the order of their arrival, so
that its end points at the rank that all others waited for.
"""

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pandas as pd

from trisect import wording
from trisect.analysis.timeline import COMPUTE, TRANSFER, WAIT, Timeline

ChromeEvent = dict[str, Any]

NOTABLE, LARGE = 0.01, 0.10
"""Shares of its section from which a wait is coloured as notable, and as large."""

_COLOURS = {COMPUTE: "generic_work", TRANSFER: "yellow"}  # names that the format reserves
_NS = 0.001  # µs


def events(timeline: Timeline) -> list[ChromeEvent]:
    """The timeline as trace events; times in µs, whole nanoseconds."""
    made: list[ChromeEvent] = []
    for place, iteration in enumerate(dict.fromkeys((timeline.slowest, timeline.median))):
        spans = timeline.sections[timeline.sections["iteration"] == iteration]
        pieces = timeline.pieces[timeline.pieces["iteration"] == iteration]
        kind = "slowest" if place == 0 else "median"
        made += _names(place, f"iteration {iteration}, the {kind}", sorted(spans["rank"].unique()))
        made += _slices(place, spans, pieces)
        made += _flows(place, pieces[pieces["kind"] != COMPUTE])
    return made


def document(timeline: Timeline, **about: object) -> bytes:
    """The content of a .json.gz file, with what else it says `about` itself; the same timeline gives the same bytes."""
    residual = None if pd.isna(timeline.residual_s) else timeline.residual_s
    content = {"traceEvents": events(timeline), "otherData": {**about, "clock_residual_s": residual}}
    return gzip.compress(json.dumps(content, separators=(",", ":")).encode(), mtime=0)


def _names(pid: int, name: str, ranks: list[int]) -> Iterator[ChromeEvent]:
    yield _event("M", 0, pid, 0, name="process_name", args={"name": name})
    yield _event("M", 0, pid, 0, name="process_sort_index", args={"sort_index": pid})
    for rank in ranks:
        yield _event("M", 0, pid, rank, name="thread_name", args={"name": f"rank {rank}"})
        yield _event("M", 0, pid, rank, name="thread_sort_index", args={"sort_index": int(rank)})


def _slices(pid: int, spans: pd.DataFrame, pieces: pd.DataFrame) -> Iterator[ChromeEvent]:
    for row in spans.to_dict("records"):
        yield _slice(pid, row, name=row["section"], cat="section")
    length = spans.assign(length=spans["end_s"] - spans["start_s"]).groupby(["rank", "section"])["length"].sum()
    for row in pieces.to_dict("records"):
        share = (row["end_s"] - row["start_s"]) / length[row["rank"], row["section"]]
        collective = {"collective": row["op"], "payload_bytes": row["bytes"]} if row["op"] else {}
        args = collective | {"share_of_section": wording.percent(share)}
        yield _slice(pid, row, name=row["kind"], cat=row["kind"], cname=_colour(row["kind"], share), args=args)


def _colour(kind: str, share: float) -> str:
    if kind != WAIT:
        return _COLOURS[kind]
    return "terrible" if share >= LARGE else "bad" if share >= NOTABLE else "good"


def _flows(pid: int, exchanged: pd.DataFrame) -> Iterator[ChromeEvent]:
    """From rank to rank of each collective in the order of arrival, inside the slice that begins there.

    Perfetto takes whole numbers alone as a flow's id; those of one iteration are odd, of the other even.
    """
    first = exchanged.sort_values("start_s", kind="stable").drop_duplicates(["pair", "rank"])
    for number, (_, ranks) in enumerate(first.groupby("pair")):
        last = len(ranks) - 1
        for place, row in enumerate(ranks.to_dict("records") if last else []):
            phase = "s" if place == 0 else "f" if place == last else "t"
            ends = {"bp": "e"} if phase == "f" else {}
            at = _us(row["start_s"]) + _NS
            yield _event(phase, at, pid, row["rank"], name=row["op"], cat="collective", id=2 * number + pid + 1, **ends)


def _slice(pid: int, row: dict[Any, Any], **more: object) -> ChromeEvent:
    start = _us(row["start_s"])
    return _event("X", start, pid, row["rank"], dur=round(_us(row["end_s"]) - start, 3), **more)


def _event(phase: str, ts: float, pid: int, rank: int, **more: object) -> ChromeEvent:
    return {"ph": phase, "ts": round(ts, 3), "pid": pid + 1, "tid": int(rank) + 1, **more}  # viewers keep 0 for idle


def _us(seconds: float) -> float:
    return round(seconds * 1e6, 3)
