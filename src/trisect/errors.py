"""The one exception a user is meant to read, and how entry points show and keep it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path


class TrisectError(Exception):
    """Bad input or a failed run, said in one line.

    The message names what is wrong, where (file, key, rank), and what to do. Entry points print it
    without a traceback and exit with code 2; any other exception is a bug in trisect.
    """


def require_extra(extra: str, *modules: str) -> None:
    """Refuse to go on without the modules that an extra installs.

    Raises:
        TrisectError: one of them is missing.
    """
    for module in modules:
        if find_spec(module) is None:
            raise TrisectError(f"{module} is not installed; this command needs it: pip install 'trisect[{extra}]'")


@contextmanager
def shown(log: Path | None = None) -> Iterator[None]:
    """Turn a TrisectError inside into its line on standard error and exit code 2.

    With a `log`, the line is also at its end, and alone in the file beside it that `kept_error` reads.
    """
    if log is not None:
        log.with_suffix(".error").unlink(missing_ok=True)
    try:
        yield
    except TrisectError as mistake:
        line = f"trisect: {mistake}"
        print(line, file=sys.stderr)
        if log is not None:
            with log.open("a") as stream:
                print(line, file=stream)
            log.with_suffix(".error").write_text(str(mistake))
        raise SystemExit(2) from None


def kept_error(log: Path) -> str | None:
    """What the last `shown` with this log showed; None where nothing went wrong, or it never ran."""
    kept = log.with_suffix(".error")
    return kept.read_text(errors="replace").splitlines()[0] if kept.exists() else None
