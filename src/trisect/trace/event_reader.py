"""A Kineto file as batches of events, a block of text at a time, so that memory does not grow with the file.

The text is split where one event ends and the next begins, filtered by `prefilter`, and decoded by msgspec. A split in
the wrong place cannot go unnoticed, since a batch that is not a list of whole objects does not decode. Only text that
does not decode is looked at character by character, in `repair`.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from trisect.errors import TrisectError
from trisect.trace import repair
from trisect.trace.events import (
    EXACT_US,
    LONGEST_NS,
    MISSING_NS,
    Event,
    ExactTimes,
    Header,
    exact_nanoseconds,
    nanoseconds,
)
from trisect.trace.prefilter import BREAK, Unneeded, prefilter, unneeded
from trisect.trace.source import Source, refusal

MOST_BETWEEN = 64 << 20
"""Bytes of other text that may stand before, after or between events."""

_NEAR = 1 << 16
"""Bytes before the end of a text in which an event nearly always ends."""

_LIST_OPENS = re.compile(rb'"traceEvents"\s*:\s*\[|\A\s*\[')
_LIST_CLOSES = re.compile(rb'(?:\A\s*|\}\s*)(\])(?=\s*(?:,\s*"[^"\n]*"\s*:|\}|\Z))')

_events = msgspec.json.Decoder(list[Event])
_exact_times = msgspec.json.Decoder(list[ExactTimes])
_raw = msgspec.json.Decoder(list[msgspec.Raw])
_header = msgspec.json.Decoder(Header)


@dataclass(frozen=True)
class Batch:
    """Consecutive events with their times as written, before the file's base time is added.

    A start is MISSING where the event has no usable one. A duration is MISSING likewise, and LONGEST_NS
    where it overflowed.
    """

    offset: int  # of the batch in the (decompressed) file
    text: memoryview  # as in the file; another one's once the next batch is read
    decoded: bytes  # what was decoded of it, a JSON list
    events: list[Event]
    start_ns: NDArray[np.int64]
    dur_ns: NDArray[np.int64]

    def offset_of(self, index: int) -> int:
        """Byte offset in the (decompressed) file of an event; of a repaired one, where the event before it ends."""
        text, position = bytes(self.text), 0
        for raw in _raw.decode(self.decoded)[: index + 1]:
            found = text.find(bytes(raw), position)
            if found >= 0:
                start, position = found, found + len(bytes(raw))
            else:
                start = position
        return self.offset + start


class Reader:
    """One file. `header` and `repairs` are complete once `batches` has ended; before, `header` is its first part.

    Args:
        path: the file.
        host_ops: whether to yield operators of the host. None: only if the file lists no device, since
            beside device activity they are not measured.
    """

    def __init__(self, path: Path, host_ops: bool | None = None) -> None:
        self.path = path
        self.host_ops = host_ops
        self.header = Header()
        self.repairs: Counter[str] = Counter()
        self.filtered_out = 0  # events that were not decoded

    def batches(self) -> Iterator[Batch]:
        """The file's events, in the file's order, without those that are never needed.

        Raises:
            TrisectError: the file is no trace, is cut, or holds text that cannot be repaired.
        """
        with Source(self.path) as source:
            head = self._open_list(source)
            self.header = _early_header(head)
            if self.host_ops is None:
                self.host_ops = b"{" not in bytes(self.header.devices)
            drop = unneeded(bytes(source.text), self.host_ops)
            while source.read():
                text = source.text
                cut = _last_boundary(text)
                batch = self._strict(text[: cut - 1], source.offset, drop) if cut else None
                if batch is None and _LIST_CLOSES.search(text):
                    self._read_rest(source)
                elif cut:
                    yield batch or self._repaired(text[: cut - 1], source.offset)
                    source.drop(cut)
                elif len(text) > MOST_BETWEEN:
                    raise self.refuse(source.offset, "no event ends in the next 64 MB; Kineto writes no such trace")
            text = self._close_list(head, source)
            if bytes(text).strip():
                yield self._strict(text, source.offset, drop) or self._repaired(text, source.offset)

    def refuse(self, offset: int, reason: str) -> TrisectError:
        """The error for something at a byte offset of this file."""
        return refusal(self.path, offset, reason)

    def _open_list(self, source: Source) -> bytes:
        """Text before the list of events; `source` holds what follows its opening."""
        while source.read() and len(source.text) < MOST_BETWEEN:
            if opens := _LIST_OPENS.search(source.text):
                head = bytes(source.text[: opens.start()])
                source.drop(opens.end())
                return head
        if not source.text:
            raise self.refuse(0, "the file is empty; record or copy the trace again")
        raise self.refuse(0, "not a Kineto trace: no list of traceEvents; name only trace files")

    def _read_rest(self, source: Source) -> None:
        before = len(source.text)
        while source.read():
            if len(source.text) - before > MOST_BETWEEN:
                raise self.refuse(
                    source.offset + before, "the list of events ends, but the file goes on for over 64 MB"
                )

    def _close_list(self, head: bytes, source: Source) -> memoryview:
        """The events before the bracket that closes their list; reads the header around them."""
        text = source.text
        reason = "the file ends inside its list of events, or the text after them is damaged; copy it again"
        for read in (_header.decode, self._repaired_header):
            for close in _closes(text):
                aside = _around(head, bytes(text[close + 1 :]))
                try:
                    self.header = read(aside)
                except msgspec.ValidationError as error:
                    reason = f"in the text beside the list of events: {error}; copy the file again"
                except msgspec.DecodeError:
                    continue
                else:
                    return text[:close]
        raise self.refuse(source.offset + len(text), reason)

    def _repaired_header(self, aside: bytes) -> Header:
        repairs: Counter[str] = Counter()
        for reading in repair.repair_text(aside, repairs):
            try:
                header = _header.decode(reading)
            except msgspec.DecodeError as error:
                last = error
                continue
            self.repairs.update(repairs)
            return header
        raise last

    def _strict(self, text: memoryview, offset: int, drop: Unneeded) -> Batch | None:
        kept, filtered_out = prefilter(text, drop)
        try:
            batch = _batch(offset, text, kept)
        except msgspec.DecodeError:
            return None
        self.filtered_out += filtered_out
        return batch

    def _repaired(self, text: memoryview, offset: int) -> Batch:
        try:
            return _batch(offset, text, b"[%b]" % repair.repair_events(bytes(text), self.repairs))
        except repair.UnrepairableError as error:
            raise self.refuse(
                offset + error.offset, "damaged event that cannot be repaired; copy the file again"
            ) from None


def _batch(offset: int, text: memoryview, decoded: bytes) -> Batch:
    events = _events.decode(decoded)
    start_us = np.array([event.ts for event in events])
    if np.nanmax(np.abs(start_us), initial=0) < EXACT_US:
        start_ns, dur_ns = nanoseconds(start_us), nanoseconds(np.array([event.dur for event in events]))
    else:
        exact = _exact_times.decode(decoded)
        start_ns, dur_ns = (exact_nanoseconds(getattr(event, key) for event in exact) for key in ("ts", "dur"))
    start_ns[np.abs(start_ns) >= LONGEST_NS] = MISSING_NS
    return Batch(offset, text, decoded, events, start_ns, dur_ns)


def _early_header(head: bytes) -> Header:
    """What stands before the list of events, as far as that can be read alone."""
    try:
        return _header.decode(_around(head, b"}"))
    except msgspec.DecodeError:
        return Header()


def _last_boundary(text: memoryview) -> int:
    """Index after the comma behind the last event that is whole, 0 if none is seen to be."""
    for last in (_last_break, _last_between):
        for start in (max(0, len(text) - _NEAR), 0):
            if boundary := last(bytes(text[start:])):
                return start + boundary
    return 0


def _last_break(text: bytes) -> int:
    return text.rfind(BREAK) + BREAK.index(b",") + 1 if BREAK in text else 0


def _last_between(text: bytes) -> int:
    return max((match.end() for match in repair.BETWEEN_EVENTS.finditer(text)), default=0)


def _closes(text: memoryview) -> Iterator[int]:
    """Where the list of events may be closed, the last first; far from the end only where all near it are no close."""
    near: list[int] = []
    for start in (max(0, len(text) - _NEAR), 0):
        found = [match.start(1) for match in _LIST_CLOSES.finditer(text, start)]
        yield from (close for close in reversed(found) if close not in near)
        near = found


def _around(head: bytes, tail: bytes) -> bytes:
    """The file without its list of events, as one JSON object; b"{}" for a file that is only the list."""
    if not head.strip():
        return b"{}" if not tail.strip() else b""
    head = head.rstrip().removesuffix(b",")
    tail = tail.lstrip()
    return head + (tail.removeprefix(b",") if head.strip() == b"{" else tail)
