"""What every layer asks of its machine: files shipped or written whole, the cores there are to use, locks."""

import fcntl
import os
import socket
from importlib.resources import files
from pathlib import Path
from typing import Any, TextIO

import yaml

from trisect.errors import TrisectError


def shipped_yaml(package: str, name: str) -> Any:
    """The content of a YAML file that ships with a package of trisect, by the C loader where there is one.

    Every start reads some of them, and that loader is about ten times as fast.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(files(package).joinpath(name).read_text(encoding="utf-8"), loader)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write text (as UTF-8) or bytes under a temporary name and rename it: whole or not at all.

    Raises:
        OSError: it cannot be written; `path` is as it was before.
    """
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content.encode() if isinstance(content, str) else content)
    partial.replace(path)


def usable_cores() -> set[int]:
    """The cores that this process may run on; outside Linux, which does not say, all there are."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


_held: list[TextIO] = []


def hold(path: Path, what: str) -> None:
    """Hold the lock file `path` until this process ends; raises as `locked`."""
    _held.append(locked(path, what))


def locked(path: Path, what: str) -> TextIO:
    """Hold the lock file `path` until it is closed; the kernel frees it when this process ends, however it ends.

    Raises:
        TrisectError: another process holds it, or the folder cannot be written.
    """
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
