"""One process at a time, over all processes and hosts that share the results folder."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from trisect.errors import TrisectError

_held: list[TextIO] = []


def hold(path: Path, what: str) -> None:
    """Hold the lock file `path` until this process ends.

    Raises:
        TrisectError: as `locked`.
    """
    _held.append(_take(path, what))


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file `path`; the kernel lets go of it when this process ends, however it ends.

    Raises:
        TrisectError: another process holds it, or the folder cannot be written.
    """
    with _take(path, what):
        yield


def _take(path: Path, what: str) -> TextIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+")
    except OSError as error:
        raise TrisectError(f"{path.parent}: cannot be written ({error.strerror}); set `results` elsewhere") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().strip() or "unknown"
        file.close()
        raise TrisectError(f"{what} is already at work ({holder}); wait for it, or end it, then rerun") from None
    file.truncate(0)
    file.write(f"process {os.getpid()} on {socket.gethostname()}")
    file.flush()
    return file
