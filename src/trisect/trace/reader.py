"""Kineto files to batches of events, a block at a time, so that memory does not grow with the file.

The text is cut where one event ends and the next begins, and each batch is decoded by msgspec. A cut in
the wrong place cannot go unseen: a batch that is not a list of whole objects does not decode.
Only what does not decode is looked at character by character, in `repair`.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from isal import igzip, isal_zlib
from numpy.typing import NDArray

from trisect.errors import TrisectError
from trisect.trace import repair
from trisect.trace.events import (
    EXACT_US,
    LONGEST_NS,
    MISSING,
    Event,
    ExactTimes,
    Header,
    exact_nanoseconds,
    nanoseconds,
)
from trisect.trace.skim import BREAK, Needless, needless, skim

BLOCK = 1 << 20
"""Bytes of text per batch."""

LONGEST_ASIDE = 64 << 20
"""Bytes that may stand before, after or between events."""

_LIST_OPENS = re.compile(rb'"traceEvents"\s*:\s*\[|\A\s*\[')
_LIST_CLOSES = re.compile(rb'(?:\A\s*|\}\s*)(\])(?=\s*(?:,\s*"[^"\n]*"\s*:|\}|\Z))')

_BAD_GZIP: tuple[type[Exception], ...] = (EOFError, zlib.error, gzip.BadGzipFile, isal_zlib.IsalError)  # type: ignore[assignment]  # its stub says instance

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
    text: bytes  # as in the file
    decoded: bytes  # what was decoded of it
    events: list[Event]
    start_ns: NDArray[np.int64]
    dur_ns: NDArray[np.int64]

    def offset_of(self, index: int) -> int:
        """Byte offset in the (decompressed) file of one of the events; of a mended one, of the event before it."""
        position = 0
        for raw in _raw.decode(b"[" + self.decoded + b"]")[: index + 1]:
            found = self.text.find(bytes(raw), position)
            if found >= 0:
                start, position = found, found + len(bytes(raw))
            else:
                start = position
        return self.offset + start


class Reader:
    """One file. `header` and `repairs` are whole once `batches` has run to its end.

    Args:
        path: the file.
        host_ops: whether to yield operators of the host. None: where the file lists no device, since
            they count for nothing where a device works.
    """

    def __init__(self, path: Path, host_ops: bool | None = None) -> None:
        self.path = path
        self.host_ops = host_ops
        self.header = Header()
        self.repairs: Counter[str] = Counter()
        self.passed_over = 0  # events that were not decoded

    def batches(self) -> Iterator[Batch]:
        """The file's events, in the file's order, without those that never matter.

        Raises:
            TrisectError: the file is no trace, is cut, or holds text that has no one reading.
        """
        blocks = self._blocks()
        head, text, offset = self._open_list(blocks)
        if self.host_ops is None:
            self.host_ops = not _lists_devices(head)
        cut_away = needless(text, self.host_ops)
        for block in blocks:
            text += block
            cut = _last_boundary(text)
            batch = self._strict(text[: cut - 1], offset, cut_away) if cut else None
            if batch is None and _LIST_CLOSES.search(text):
                text += self._rest(blocks, offset + len(text))
            elif cut:
                yield batch or self._mended(text[: cut - 1], offset)
                text, offset = text[cut:], offset + cut
            elif len(text) > LONGEST_ASIDE:
                raise self.refuse(offset, "no event ends in the next 64 MB; this is no trace that Kineto wrote")
        text = self._close_list(head, text, offset)
        if text.strip():
            yield self._strict(text, offset, cut_away) or self._mended(text, offset)

    def refuse(self, offset: int, reason: str) -> TrisectError:
        """The error for something at a byte offset of this file."""
        where = "decompressed byte" if _is_gzip(self.path) else "byte"
        return TrisectError(f"{self.path}: {where} {offset}: {reason}")

    def _blocks(self) -> Iterator[bytes]:
        position = 0
        try:
            with igzip.open(self.path) if _is_gzip(self.path) else self.path.open("rb") as stream:
                while block := stream.read(BLOCK):
                    yield block
                    position += len(block)
        except _BAD_GZIP as error:
            raise self.refuse(position, f"the gzip stream is cut or damaged ({error}); copy the file again") from None
        except OSError as error:
            raise TrisectError(f"{self.path}: cannot be read ({error.strerror}); check the file") from None

    def _open_list(self, blocks: Iterator[bytes]) -> tuple[bytes, bytes, int]:
        """Text before the list of events, the first text within it, and the offset of that."""
        text = b""
        for block in blocks:
            text += block
            if opens := _LIST_OPENS.search(text):
                return text[: opens.start()], text[opens.end() :], opens.end()
            if len(text) > LONGEST_ASIDE:
                break
        if not text:
            raise self.refuse(0, "the file is empty; record or copy the trace again")
        raise self.refuse(0, "not a Kineto trace: no list of traceEvents; name only trace files")

    def _rest(self, blocks: Iterator[bytes], offset: int) -> bytes:
        rest = b""
        for block in blocks:
            rest += block
            if len(rest) > LONGEST_ASIDE:
                raise self.refuse(offset, "the list of events ends, but the file goes on for over 64 MB")
        return rest

    def _close_list(self, head: bytes, text: bytes, offset: int) -> bytes:
        """The events before the bracket that closes their list; reads the header around them."""
        closes = [match.start(1) for match in _LIST_CLOSES.finditer(text)]
        reason = "the file ends inside its list of events, or the text after them is damaged; copy it again"
        for read in (_header.decode, self._mended_header):
            for close in reversed(closes):
                aside = _around(head, text[close + 1 :])
                try:
                    self.header = read(aside)
                except msgspec.ValidationError as error:
                    reason = f"in the text beside the list of events: {error}; copy the file again"
                except msgspec.DecodeError:
                    continue
                else:
                    return text[:close]
        raise self.refuse(offset + len(text), reason)

    def _mended_header(self, aside: bytes) -> Header:
        mends: Counter[str] = Counter()
        for reading in repair.mend_text(aside, mends):
            try:
                header = _header.decode(reading)
            except msgspec.DecodeError as error:
                last = error
                continue
            self.repairs.update(mends)
            return header
        raise last

    def _strict(self, text: bytes, offset: int, cut_away: Needless) -> Batch | None:
        kept, passed_over = skim(text, cut_away)
        try:
            batch = _batch(offset, text, kept)
        except msgspec.DecodeError:
            return None
        self.passed_over += passed_over
        return batch

    def _mended(self, text: bytes, offset: int) -> Batch:
        try:
            return _batch(offset, text, repair.mend_events(text, self.repairs))
        except repair.UnmendableError as error:
            raise self.refuse(offset + error.offset, "damaged event without one clear reading; copy it again") from None


def _batch(offset: int, text: bytes, decoded: bytes) -> Batch:
    events = _events.decode(b"[" + decoded + b"]")
    start_us = np.array([event.ts for event in events])
    if np.nanmax(np.abs(start_us), initial=0) < EXACT_US:
        start_ns, dur_ns = nanoseconds(start_us), nanoseconds(np.array([event.dur for event in events]))
    else:
        exact = _exact_times.decode(b"[" + decoded + b"]")
        start_ns, dur_ns = (exact_nanoseconds(getattr(event, key) for event in exact) for key in ("ts", "dur"))
    start_ns[np.abs(start_ns) >= LONGEST_NS] = MISSING
    return Batch(offset, text, decoded, events, start_ns, dur_ns)


def _lists_devices(head: bytes) -> bool:
    try:
        return b"{" in bytes(_header.decode(_around(head, b"}")).devices)
    except msgspec.DecodeError:
        return False


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(2) == b"\x1f\x8b"


def _last_boundary(text: bytes) -> int:
    """Index after the comma behind the last event that is whole, 0 if none is seen to be."""
    if (last := text.rfind(BREAK)) >= 0:
        return last + BREAK.index(b",") + 1
    for start in (max(0, len(text) - 65536), 0):
        boundary = 0
        for match in repair.BETWEEN_EVENTS.finditer(text, start):
            boundary = match.end()
        if boundary:
            return boundary
    return 0


def _around(head: bytes, tail: bytes) -> bytes:
    """The file without its list of events, as one JSON object; b"{}" for a file that is only the list."""
    if not head.strip():
        return b"{}" if not tail.strip() else b""
    head = head.rstrip().removesuffix(b",")
    tail = tail.lstrip()
    return head + (tail.removeprefix(b",") if head.strip() == b"{" else tail)
