"""Which collective of one rank is which collective of another, and which iterations all ranks share.

Rows are paired by iteration, section, occurrence, process group, group size, sequence number (where the trace has one),
operation and payload; rows with equal keys are matched in order of start, first with first. What has no partner on some
rank of its group is refused: a number made of events that do not belong together would look like any other.
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from trisect import wording
from trisect.errors import TrisectError
from trisect.results.notes import Note, note
from trisect.results.tables import OUTSIDE, POINT_TO_POINT, Trace

_UNEVEN = frozenset({"all_to_all"})  # each rank may send another number of bytes
_PLACE = ["iteration", "section", "occurrence", "group", "op", "size"]


def share_iterations(trace: Trace) -> tuple[Trace, list[Note]]:
    """Keep the iterations that every rank has.

    Returns:
        The trace, and a note for every rank that had more.

    Raises:
        TrisectError: no rank, no iteration in common, or a section that one rank has and another has not.
    """
    everyone = sorted(int(rank) for rank in trace.readings["rank"].unique())
    per_rank = {rank: set(found) for rank, found in trace.sections.groupby("rank")["iteration"]}
    have = {rank: per_rank.get(rank, set()) for rank in everyone}
    shared = set.intersection(*have.values()) if have else set()
    if not shared:
        seen = "; ".join(f"rank {rank}: {wording.ranges(found) or 'none'}" for rank, found in list(have.items())[:8])
        raise TrisectError(f"no iteration is in the traces of all ranks ({seen}); record the same ones on every rank")
    dropped = [
        note("iterations_dropped", rank=rank, extra=sorted(map(int, found - shared)), kept=sorted(map(int, shared)))
        for rank, found in have.items()
        if found - shared
    ]
    sections = trace.sections[trace.sections["iteration"].isin(shared)]
    collectives = trace.collectives[trace.collectives["iteration"].isin(shared)]
    _check_sections(sections, everyone)
    return replace(trace, sections=sections, collectives=collectives), dropped


def _check_sections(sections: pd.DataFrame, everyone: list[int]) -> None:
    on = sections.groupby(["iteration", "section", "occurrence"])["rank"].agg(["size", "nunique"])
    odd = on[(on["nunique"] != len(everyone)) | (on["size"] != len(everyone))]
    if odd.empty:
        return
    iteration, section, occurrence = odd.index[0]
    here = (sections["iteration"] == iteration) & (sections["section"] == section)
    have = sections.loc[here & (sections["occurrence"] == occurrence), "rank"]
    missing = sorted(set(everyone) - set(have))
    where = f"iteration {iteration}, section {section!r} (occurrence {occurrence})"
    if not missing:
        raise TrisectError(f"{where}: {wording.ranks(have[have.duplicated()])} has it twice; name each section once")
    raise TrisectError(
        f"{where}: on {wording.ranks(have)} but not on {wording.ranks(missing)};"
        " leave the section out, or mark it on every rank"
    )


def pair(collectives: pd.DataFrame, world_size: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Pair the collectives.

    Args:
        collectives: tables.COLLECTIVES, of iterations that all ranks share.
        world_size: the number of ranks.

    Returns:
        Those in a section and those outside, such as closing barriers, by rank and start, with three columns more:
        `pair`, equal for the rows of one collective; `slot`, equal for those that have the same place in different
        iterations; `paired`, false for send and recv, which are left alone, a pair each, because a trace does not say
        who the other end was. Outside, kinds that do not pair throughout an iteration are left out: they serve the
        clocks alone, so leaving some out is safe and guessing is not.

    Raises:
        TrisectError: a collective in a section without a partner on some rank of its group.
    """
    rows = _place(collectives)
    outside = rows["section"] == OUTSIDE
    inside = rows[~outside]
    _check_world(inside, world_size)
    full = ~rows["paired"] | (rows.groupby("pair")["rank"].transform("size") == rows["group_size"])
    wrong = inside[~full[~outside]]
    if not wrong.empty:
        _refuse(wrong, inside)
    sound = full.groupby([rows[name] for name in _PLACE]).transform("all").astype(bool)
    scratch = ["size", "position"]
    return inside.drop(columns=scratch), rows[outside & sound].drop(columns=scratch)


def _place(collectives: pd.DataFrame) -> pd.DataFrame:
    rows = collectives.sort_values(["rank", "start_ns", "end_ns"], kind="stable", ignore_index=True)
    rows["paired"] = ~rows["op"].isin(POINT_TO_POINT)
    rows["size"] = rows["bytes"].mask(rows["op"].isin(_UNEVEN), -1)
    rows["position"] = rows.groupby(["rank", "iteration"]).cumcount()
    ordinal = rows.groupby(["rank", *_PLACE]).cumcount()
    rows["slot"] = _numbered([rows[name] for name in _PLACE[1:]] + [ordinal])
    alone = pd.Series(np.arange(len(rows)), index=rows.index).mask(rows["paired"], -1)
    rows["pair"] = _numbered([rows["slot"], rows["iteration"], rows["seq"], rows["group_size"], alone])
    return rows


def _numbered(keys: list[pd.Series]) -> pd.Series:
    """0, 1, ... for each distinct combination of `keys`, in order of appearance."""
    frame = pd.concat([key.rename(str(n)) for n, key in enumerate(keys)], axis=1)
    return frame.groupby(list(frame.columns), sort=False).ngroup()


def _check_world(rows: pd.DataFrame, world_size: int) -> None:
    largest = int(rows["group_size"].max()) if len(rows) else 0
    if largest > world_size:
        raise TrisectError(
            f"collectives of {largest} ranks, but traces of {world_size} ({wording.ranks(rows['rank'])}): transfer and"
            " wait cannot be told apart without all; give the trace of every rank"
        )


def _refuse(wrong: pd.DataFrame, rows: pd.DataFrame) -> None:
    first = wrong.sort_values(["iteration", "position", "rank"]).iloc[0]
    have = rows.loc[rows["pair"] == first["pair"], "rank"]
    group = rows[(rows["group"] == first["group"]) & (rows["group_size"] == first["group_size"])]
    missing = sorted(set(group["rank"]) - set(have))
    message = (
        f"iteration {first['iteration']}, section {first['section']!r}, collective {first['position'] + 1} of the"
        f" iteration: {_describe(first)} ran on {wording.ranks(have)}"
    )
    if missing:
        message += f" but not on {wording.ranks(missing)}"
        other = rows[(rows["rank"] == missing[0]) & (rows["iteration"] == first["iteration"])]
        other = other[other["position"] == first["position"]]
        message += f", where rank {missing[0]} ran {_describe(other.iloc[0])}" if len(other) else ""
    else:
        message += f", not on {first['group_size']} as its group is large"
    raise TrisectError(f"{message}; collectives pair only if every rank of a group recorded the same ones")


def _describe(row: pd.Series) -> str:
    size = f" of {row['bytes']} bytes" if row["bytes"] >= 0 else ""
    seq = f", sequence number {row['seq']}" if row["seq"] >= 0 else ""
    return f"{row['op']}{size} (group {row['group']!r}{seq})"
