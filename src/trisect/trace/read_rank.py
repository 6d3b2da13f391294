"""One rank's file to the rows that it adds to the tables."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from trisect import wording
from trisect.errors import TrisectError
from trisect.results.layout import rank_of_file
from trisect.results.notes import Note, note
from trisect.trace.chunks import OutOfOrderError, chunks
from trisect.trace.event_reader import Reader
from trisect.trace.events import Header
from trisect.trace.measure_chunk import MeasuredChunk, Skipped, measure
from trisect.trace.recording import Annotation, Recording
from trisect.trace.windows import is_iteration, is_measured

NO_DEVICE_COMMUNICATION = "no device-side communication recorded"


@dataclass(frozen=True)
class RankTables:
    """What one file says: columns by name, as in tables.SECTIONS and tables.COLLECTIVES, without the rank."""

    path: Path
    rank: int | None
    world_size: int | None
    base_ns: int  # 0 where the file states none
    sections: dict[str, Any]
    collectives: dict[str, Any]
    reading: dict[str, Any]
    notes: list[Note]
    annotations: set[str]  # their names, for an error about one that is missing


def read_rank(path: Path, sections: Sequence[str] | None, iteration: str) -> RankTables:
    """Read one file.

    A long one is measured chunk by chunk, so that memory does not grow with its length. Should it turn out not
    to be in order of time, it is read once more, and whole.

    Raises:
        TrisectError: it cannot be read, or not without guessing; the message has the byte offset.
    """
    try:
        return _read(path, sections, iteration, whole=False)
    except OutOfOrderError:
        return _read(path, sections, iteration, whole=True)


def _read(path: Path, sections: Sequence[str] | None, iteration: str, whole: bool) -> RankTables:
    reader, recording, parts = _parts(Reader(path), sections, iteration, whole)
    if not reader.host_ops and _host_matters(reader, parts):
        reader, recording, parts = _parts(Reader(path, host_ops=True), sections, iteration, whole)
    info = reader.header.distributed
    collectives = _by_start(_joined([part.collectives for part in parts], reader.header.base_ns))
    if info.world_size != 1 and _only_enqueued(parts, bool(collectives["op"])):
        reason = "profile with CUDA activity on, or host events of the backend"
        raise _refuse(path, f"{NO_DEVICE_COMMUNICATION}; {reason}", None)
    skipped = list(chain.from_iterable(part.skipped for part in parts))
    if all(len(part.skipped) == len(part.iterations) for part in parts):
        words = wording.iterations(one.iteration for one in skipped)
        raise _refuse(
            path, f"0 iterations left: kernel launches left no kernel in {words}; record more, after a warm-up", None
        )
    repairs = recording.repairs
    rank = rank_of_file(path) if info.rank is None else info.rank
    return RankTables(
        path,
        rank,
        info.world_size,
        reader.header.base_ns,
        _joined([part.sections for part in parts], reader.header.base_ns),
        collectives,
        {
            "events": recording.events,
            "repairs": repairs.total(),
            "device_ns": sum(part.device_ns for part in parts),
            "unattributed_ns": sum(part.unattributed_ns for part in parts),
        },
        _notes(rank, repairs, skipped),
        recording.names,
    )


def _notes(rank: int | None, repairs: Counter[str], skipped: list[Skipped]) -> list[Note]:
    """What to know about how a file was read."""
    kinds = "; ".join(f"{name} x{count}" for name, count in sorted(repairs.items()))
    found = [note("repaired", rank=rank, count=repairs.total(), kinds=kinds)] if repairs else []
    if skipped:
        found.append(note("iterations_skipped", rank=rank, skipped=[one._asdict() for one in skipped]))
    return found


def _parts(
    reader: Reader, sections: Sequence[str] | None, iteration: str, whole: bool
) -> tuple[Reader, Recording, list[MeasuredChunk]]:
    """The chunks of a file measured, and the last recording, which has the counts of all of them."""
    parts: list[MeasuredChunk] = []
    headers: list[Header] = []
    starts, refuse = is_iteration(iteration), partial(_refuse, reader.path)
    for recording in chunks(reader, starts, is_measured(sections, starts), whole):
        first = sum(len(part.iterations) for part in parts)
        headers.append(reader.header)
        try:
            parts.append(measure(recording, reader.header, sections, iteration, first, refuse))
        except TrisectError as error:
            # It may not be wrong of the whole file, or not be the first thing that is.
            raise error if whole else OutOfOrderError from None
    if len(parts) > 1:
        _check_alike(parts, recording, headers)
    return reader, recording, parts


def _host_matters(reader: Reader, parts: list[MeasuredChunk]) -> bool:
    """Whether operators of the host count in a file that lists devices, so that they were not read."""
    alone = reader.header.distributed.world_size == 1
    if alone and all(part.on_device and part.in_order is None for part in parts):
        return False
    return not any(part.communicates for part in parts)


def _check_alike(parts: list[MeasuredChunk], recording: Recording, headers: list[Header]) -> None:
    """Raises OutOfOrderError if chunks were measured by different rules than the whole file would be."""
    steps = {part.in_order for part in parts} - {None}
    numbers = list(chain.from_iterable(part.iterations for part in parts))
    rules = {(part.on_device, part.by_order, part.thread) for part in parts}
    idle = frozenset.union(*(part.uncounted_threads for part in parts))
    stated = [header.distributed == headers[-1].distributed for header in headers]
    alike = len(rules) == 1 and len(steps) < 2 and len(set(numbers)) == len(numbers) and all(stated)
    if not alike or idle & recording.autograd_threads:
        raise OutOfOrderError


def _joined(tables: list[dict[str, Any]], base_ns: int) -> dict[str, Any]:
    """The tables of all chunks as one, with the file's base time added."""
    columns: dict[str, Any] = {name: list(chain.from_iterable(table[name] for table in tables)) for name in tables[0]}
    for name in ("start_ns", "end_ns"):
        columns[name] = np.array(columns[name], np.int64) + base_ns
    return columns


def _by_start(columns: dict[str, Any]) -> dict[str, Any]:
    """In order of start, since those of one chunk may start after the first of the next: the host runs ahead."""
    order = np.lexsort((columns["end_ns"], columns["start_ns"])).tolist()
    return {name: [column[at] for at in order] for name, column in columns.items()}


def _only_enqueued(parts: list[MeasuredChunk], collectives: bool) -> bool:
    """Whether the host asked for communication that is not in the trace: NCCL's, or any where there is none."""
    of_nccl = any(part.enqueues for part in parts) and not any(part.communicates for part in parts)
    return of_nccl or (not collectives and any(part.calls for part in parts))


def _refuse(path: Path, reason: str, annotation: Annotation | None) -> TrisectError:
    """The error for a reason; an event's offset is found by reading the file again."""
    if annotation is None:
        return TrisectError(f"{path}: {reason}")
    reader = Reader(path)
    offset, index = annotation.place
    batch = next(batch for batch in reader.batches() if batch.offset == offset)
    return reader.refuse(batch.offset_of(index), reason)
