"""Cuts away, before text is decoded, the events that Kineto writes by the hundred thousand and that are never needed.

Only in Kineto's own layout, and only an event that is whole: its braces are counted, so that two events with a
damaged break between them are not taken for one. Other text is decoded in full.
"""

from __future__ import annotations

from dataclasses import dataclass

BREAK = b"\n  },\n  {"
"""What Kineto writes between two events."""

_FLOWS = tuple(f'"ph": "{phase}"' for phase in "fst")
_NEVER = (
    '"ph": "X", "cat": "python_function"',
    *(f'"ph": "X", "cat": "cuda_runtime", "name": "cuda{call}' for call in ("Stream", "Event", "Func", "Occupancy")),
)
_HOST_OP = '"ph": "X", "cat": "cpu_op"'


@dataclass(frozen=True)
class Needless:
    """How the events to cut begin after a BREAK: those with one object inside, their arguments, and those with none."""

    complete: tuple[bytes, ...]
    flows: tuple[bytes, ...]


def needless(text: bytes, host_ops: bool) -> Needless:
    """What may be cut from a file that begins with `text`; the host's operators unless they are asked for."""
    between = ",\n    " if b'"ph": "X",\n' in text else ", "

    def openings(*beginnings: str) -> tuple[bytes, ...]:
        return tuple(f"\n    {beginning.replace(', ', between)}".encode() for beginning in beginnings)

    return Needless(openings(*_NEVER) if host_ops else openings(_HOST_OP, *_NEVER), openings(*_FLOWS))


def skim(text: bytes, cut: Needless) -> tuple[bytes, int]:
    """Text without the events to cut, and how many were."""
    parts = text.split(BREAK)
    complete, flows = cut.complete, cut.flows
    kept = [
        part
        for part in parts[:-1]
        if not (part.startswith(complete) and part.count(b"{") == 1)
        and not (part.startswith(flows) and b"{" not in part)
    ]
    kept.append(parts[-1])
    return BREAK.join(kept), len(parts) - len(kept)
