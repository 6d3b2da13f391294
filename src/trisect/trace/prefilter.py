"""Filters out, before text is decoded, events that Kineto writes by the hundred thousand and that are never needed.

Only in Kineto's own layout, and only an event that is whole: its braces are counted, so that two events with a
damaged break between them are not taken for one. Other text is decoded in full.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

BREAK = b"\n  },\n  {"
"""What Kineto writes between two events."""

_FLOWS = tuple(f'"ph": "{phase}"' for phase in "fst")
_NEVER = (
    '"ph": "X", "cat": "python_function"',
    *(f'"ph": "X", "cat": "cuda_runtime", "name": "cuda{call}' for call in ("Stream", "Event", "Func", "Occupancy")),
)
_HOST_OP = '"ph": "X", "cat": "cpu_op"'

_HEAD = 80
"""Bytes of an event that are looked at, from BREAK on; no opening in Unneeded is longer."""

_WORD = 8

Tree = dict[tuple[int, int, int], "Tree"]
"""Texts as (which word, the bits of it that count, the word): what may follow. Shared words are compared once."""

Unneeded = dict[int, Tree]
"""How unneeded events begin after a BREAK, by the number of braces within: one where an event has arguments."""


def unneeded(text: bytes, host_ops: bool) -> Unneeded:
    """What to filter out of a file that begins with `text`; the host's operators too unless they are asked for."""
    between = ",\n    " if b'"ph": "X",\n' in text else ", "

    def openings(*beginnings: str) -> Tree:
        return _tree(f"\n    {beginning.replace(', ', between)}".encode() for beginning in beginnings)

    return {0: openings(*_FLOWS), 1: openings(*_NEVER) if host_ops else openings(_HOST_OP, *_NEVER)}


def prefilter(text: memoryview, unneeded: Unneeded) -> tuple[bytes, int]:
    """The events of `text` without the unneeded ones, as a JSON list, and how many were filtered out.

    A search for one character and a look at the places found goes at the speed of memory in numpy, where a split at
    every BREAK makes an object of every event.
    """
    if len(text) < _HEAD:
        return b"".join((b"[", text, b"]")), 0
    braces = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("{"))
    braces = braces[np.searchsorted(braces, len(BREAK) - 1) :]
    before = _stretches(text, _WORD)[braces - len(BREAK) + 1].view("<u8")
    breaks = np.flatnonzero(before == _word(BREAK[:_WORD]))
    begins = braces[breaks] + 1
    within = np.diff(breaks) - 1  # braces in each event but the last, whose end is not a BREAK
    within = within[: np.searchsorted(begins, len(text) - _HEAD)]
    heads = _stretches(text, _HEAD)[begins[: len(within)]].view("<u8").reshape(-1, _HEAD // _WORD)
    kept = np.ones(len(begins), bool)
    for count, openings in unneeded.items():
        kept[: len(within)] &= ~_begins_so(openings, heads, within == count)
    # Each change is the first event of a run: filtered out, kept, and so on by turns.
    change = begins[np.flatnonzero(np.diff(kept, prepend=True))]
    starts, stops = change[1::2] - 1, change[::2] - len(BREAK) + len(b"\n  },")
    spans = zip([0, *starts.tolist()], [*stops.tolist(), len(text)], strict=True)
    return b"".join([b"[", *[text[start:stop] for start, stop in spans], b"]"]), len(kept) - int(kept.sum())


def _stretches(text: memoryview, length: int) -> NDArray[np.void]:
    """The `length` bytes from each place of `text` on, without copying: as void, which numpy gathers fastest."""
    return np.ndarray(len(text) - length + 1, f"V{length}", text, strides=(1,))


def _begins_so(openings: Tree, heads: NDArray[np.uint64], among: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which of the events, a row of `heads` each, are `among` those and begin with one of the openings."""
    if not openings:
        return among
    found = np.zeros(len(among), bool)
    for (column, bits, word), rest in openings.items():
        found |= _begins_so(rest, heads, among & (heads[:, column] & bits == word))
    return found


def _tree(texts: Iterable[bytes]) -> Tree:
    tree: Tree = {}
    for text in texts:
        branch = tree
        for at in range(0, len(text), _WORD):
            part = text[at : at + _WORD]
            branch = branch.setdefault((at // _WORD, _word(b"\xff" * len(part)), _word(part)), {})
    return tree


def _word(text: bytes) -> int:
    return int.from_bytes(text, "little")
