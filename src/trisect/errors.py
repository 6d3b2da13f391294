"""The one exception a user is meant to read, and how entry points show it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class TrisectError(Exception):
    """Bad input or a failed run, said in one line.

    The message names what is wrong, where (file, key, rank), and what to do. Entry points print it
    without a traceback and exit with code 2; any other exception is a bug in trisect.
    """


@contextmanager
def shown(log: Path | None = None) -> Iterator[None]:
    """Turn a TrisectError inside into its line on standard error (and at the end of `log`) and exit code 2."""
    try:
        yield
    except TrisectError as mistake:
        line = f"trisect: {mistake}"
        print(line, file=sys.stderr)
        if log is not None:
            with log.open("a") as stream:
                print(line, file=stream)
        raise SystemExit(2) from None
