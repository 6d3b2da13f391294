"""What every floor asks of the machine it runs on: files that stand only whole, and the cores there are to use."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Write text (as UTF-8) or bytes under a temporary name and rename it: whole or not at all.

    Raises:
        OSError: it cannot be written; what stood at `path` still stands.
    """
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content.encode() if isinstance(content, str) else content)
    partial.replace(path)


def usable_cores() -> set[int]:
    """The cores that this process may run on; outside Linux, which does not say, all there are."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))
