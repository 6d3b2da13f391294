"""The files of one job, read side by side, as one set of tables."""

import multiprocessing
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from trisect.errors import TrisectError
from trisect.host import usable_cores
from trisect.results.notes import note
from trisect.results.tables import COLLECTIVES, READINGS, SECTIONS, Table, Trace, as_table
from trisect.trace.read_rank import RankTables, read_rank
from trisect.trace.windows import meant

T = TypeVar("T")

SUFFIXES = (".json", ".json.gz")

WORTH_A_PROCESS = 100_000_000
"""Bytes of text: less is read sooner than processes start."""


def read_job(
    source: Path | Iterable[Path],
    *,
    sections: Sequence[str] | None = None,
    iteration: str = "ProfilerStep",
    workers: int | None = None,
) -> Trace:
    """Read one job's traces, one file a rank.

    Args:
        source: a folder, of which files that end in .json or .json.gz are read, or several folders or files.
        sections: names of the annotations to measure; None measures each iteration whole, as "iteration".
        iteration: iterations are the annotations of this name, or of this name, "#" and their number.
        workers: processes to read with, where the files are large; None takes the cores this process may use.

    Raises:
        TrisectError: there is no trace, a file is damaged beyond repair, or the files are not one job's.
    """
    read = partial(read_rank, sections=sections, iteration=iteration)
    ranks = _by_rank(read_each(trace_files(source), read, workers))
    _check_world(ranks)
    if sections is not None:
        _check_sections(ranks, sections)
    return Trace(
        _stack(ranks, [one.sections for one in ranks], SECTIONS),
        _stack(ranks, [one.collectives for one in ranks], COLLECTIVES),
        as_table([{"rank": one.rank, "file": str(one.path), **one.reading} for one in ranks], READINGS),
        [note(said.kind, **said.values | {"rank": one.rank}) for one in ranks for said in one.notes],
    )


def trace_files(source: Path | Iterable[Path]) -> list[Path]:
    """The files of one job: those that are named, and those of a folder that end in SUFFIXES.

    Raises:
        TrisectError: there are none, or one does not exist.
    """
    paths: list[Path] = []
    for one in [source] if isinstance(source, Path) else source:
        if one.is_dir():
            found = sorted(path for path in one.iterdir() if path.name.endswith(SUFFIXES) and path.is_file())
            if not found:
                raise TrisectError(f"{one}: no trace files (*.json, *.json.gz); name the folder of one job's traces")
            paths += found
        elif one.exists():
            paths.append(one)
        else:
            raise TrisectError(f"{one}: no such file; name a folder of traces or trace files")
    return paths


def read_each(paths: list[Path], read: Callable[[Path], T], workers: int | None = None) -> list[T]:
    """What `read` makes of each file, side by side where the files are large.

    Raises:
        TrisectError: as `read`, or a process ran out of memory.
    """
    workers = min(workers or len(usable_cores()), len(paths))
    if workers == 1 or sum(_text_bytes(path) for path in paths) < WORTH_A_PROCESS:
        return [read(path) for path in paths]
    largest_first = sorted(paths, key=lambda path: path.stat().st_size, reverse=True)
    with ProcessPoolExecutor(workers, multiprocessing.get_context(_start_method())) as pool:
        futures = {path: pool.submit(read, path) for path in largest_first}
        try:
            return [futures[path].result() for path in paths]
        except BrokenProcessPool:
            raise TrisectError(
                f"{paths[0].parent}: a reading process was killed; free memory, or use 1 worker"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


def _text_bytes(path: Path) -> int:
    """About how much text a file holds; traces compress to a tenth."""
    return path.stat().st_size * (10 if path.suffix == ".gz" else 1)


def _by_rank(ranks: list[RankTables]) -> list[RankTables]:
    """By rank. A lone file that states none is rank 0."""
    by_rank: dict[int, RankTables] = {}
    for one in ranks:
        rank = 0 if one.rank is None and len(ranks) == 1 else one.rank
        if rank is None:
            raise TrisectError(f"{one.path}: no rank in distributedInfo nor in the file name; name it rank-N.json")
        if rank in by_rank:
            raise TrisectError(f"{one.path}: rank {rank} is also in {by_rank[rank].path}; keep one of them")
        by_rank[rank] = replace(one, rank=rank)
    return [by_rank[rank] for rank in sorted(by_rank)]


def _check_world(ranks: list[RankTables]) -> None:
    sizes = {size: one for one in reversed(ranks) if (size := one.world_size) is not None}
    if len(sizes) > 1:
        stated = "; ".join(f"{one.path.name} says {size}" for size, one in sorted(sizes.items()))
        raise TrisectError(f"{ranks[0].path.parent}: not one job: the world size differs: {stated}")
    unbased = [one for one in ranks if not one.base_ns]
    if 0 < len(unbased) < len(ranks):
        raise TrisectError(f"{unbased[0].path}: no baseTimeNanoseconds, which other ranks have; copy the file again")
    for size in sizes:
        outside = [one for one in ranks if not 0 <= (one.rank or 0) < size]
        if outside:
            raise TrisectError(f"{outside[0].path}: rank {outside[0].rank} in a world of {size}; check the files")


def _check_sections(ranks: list[RankTables], names: Sequence[str]) -> None:
    """Every section on all ranks, equally often in each iteration that all of them have."""
    for name in names:
        without = [one for one in ranks if name not in one.sections["section"]]
        if len(without) == len(ranks):
            sections = {known for known in ranks[0].annotations if not known.endswith("#k")}
            raise TrisectError(f"{ranks[0].path}: no annotation named {name!r}{meant(name, sections)}")
        if without:
            listed = ", ".join(str(one.rank) for one in without)
            raise TrisectError(f"{without[0].path}: section {name!r} is missing on rank {listed}, not on all ranks")
    counts = [Counter(zip(one.sections["iteration"], one.sections["section"], strict=True)) for one in ranks]
    shared = set.intersection(*({iteration for iteration, _ in count} for count in counts))
    for one, count in zip(ranks, counts, strict=True):
        for iteration, name in sorted(key for key in counts[0] | count if key[0] in shared):
            if count[iteration, name] != counts[0][iteration, name]:
                raise TrisectError(
                    f"{one.path}: iteration {iteration}: section {name!r} occurs {count[iteration, name]} times"
                    f" on rank {one.rank} but {counts[0][iteration, name]} times on rank {ranks[0].rank}"
                )


def _stack(ranks: list[RankTables], parts: list[dict[str, Any]], schema: Table) -> pd.DataFrame:
    columns = {name: list(chain.from_iterable(part[name] for part in parts)) for name in schema if name != "rank"}
    columns["rank"] = list(
        chain.from_iterable([one.rank] * len(part["iteration"]) for one, part in zip(ranks, parts, strict=True))
    )
    table = as_table(pd.DataFrame(columns), schema)
    if "group_size" in schema and all(one.world_size is None for one in ranks):
        table["group_size"] = table["group_size"].where(table["group_size"] >= 0, len(ranks))
    return table


def _start_method() -> str:
    """Forking starts at once where spawning imports pandas again, but may only be done where no thread holds a lock."""
    alone = threading.active_count() == 1 and "torch" not in sys.modules
    return "fork" if alone else "spawn"
