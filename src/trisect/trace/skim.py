"""Cuts away, before text is decoded, the events that Kineto writes by the hundred thousand and that are never needed.

Only in Kineto's own layout, and only an event that is whole: its braces are counted, so that two events with a
damaged break between them are not taken for one. Other text is decoded in full.
"""

from __future__ import annotations

BREAK = b"\n  },\n  {"
"""What Kineto writes between two events."""

_FLOWS = tuple(f'"ph": "{phase}"' for phase in "fst")
_NEVER = (
    '"ph": "X", "cat": "python_function"',
    *(f'"ph": "X", "cat": "cuda_runtime", "name": "cuda{call}' for call in ("Stream", "Event", "Func", "Occupancy")),
)
_HOST_OP = '"ph": "X", "cat": "cpu_op"'


Needless = dict[int, tuple[bytes, ...]]
"""How the events to cut begin after a BREAK, by the number of braces within: one where an event has arguments."""


def needless(text: bytes, host_ops: bool) -> Needless:
    """What may be cut from a file that begins with `text`; the host's operators unless they are asked for."""
    between = ",\n    " if b'"ph": "X",\n' in text else ", "

    def openings(*beginnings: str) -> tuple[bytes, ...]:
        return tuple(f"\n    {beginning.replace(', ', between)}".encode() for beginning in beginnings)

    return {0: openings(*_FLOWS), 1: openings(*_NEVER) if host_ops else openings(_HOST_OP, *_NEVER)}


def skim(text: bytes, cut: Needless) -> tuple[bytes, int]:
    """Text without the events to cut, and how many were."""
    parts = text.split(BREAK)
    last = parts.pop()  # its end is not a BREAK
    kept = [part for part in parts if not part.startswith(cut.get(part.count(b"{"), ()))]
    return BREAK.join((*kept, last)), len(parts) - len(kept)
