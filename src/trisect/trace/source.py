"""The text of a file, plain or gzipped, a block at a time."""

import gzip
import zlib
from pathlib import Path
from typing import BinaryIO, Self, cast

from isal import igzip, isal_zlib

from trisect.errors import TrisectError

BLOCK = 4 << 20
"""Bytes read at a time. Larger ones leave the processor's cache, for smaller ones the calls of numpy count."""

_BAD_GZIP: tuple[type[Exception], ...] = (EOFError, zlib.error, gzip.BadGzipFile, isal_zlib.IsalError)  # type: ignore[assignment]  # its stub says instance


class Source:
    """One file through one buffer: fresh memory for each block would cost more than reading it.

    Attributes:
        offset: of the text that is held in the (decompressed) file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        self._buffer = bytearray(2 * BLOCK)
        self._held = 0

    def __enter__(self) -> Self:
        try:
            opened = igzip.open(self.path) if _is_gzip(self.path) else self.path.open("rb", buffering=0)
        except OSError as error:
            raise self._unreadable(error) from None
        self._stream = cast(BinaryIO, opened)
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    @property
    def text(self) -> memoryview:
        """What is held, until the next `read` or `drop`."""
        return memoryview(self._buffer)[: self._held]

    def read(self) -> bool:
        """Hold one more block; False at the end of the file.

        Raises:
            TrisectError: the file cannot be read, or its gzip stream is cut or damaged.
        """
        if len(self._buffer) < self._held + BLOCK:
            self._buffer = self._buffer[: self._held] + bytes(self._held + BLOCK)
        try:
            count = self._stream.readinto(memoryview(self._buffer)[self._held : self._held + BLOCK])  # type: ignore[attr-defined]
        except _BAD_GZIP as error:
            reason = f"the gzip stream is cut or damaged ({error}); copy the file again"
            raise refusal(self.path, self.offset + self._held, reason) from None
        except OSError as error:
            raise self._unreadable(error) from None
        self._held += count
        return count > 0

    def drop(self, count: int) -> None:
        """Free the first `count` bytes."""
        rest = self._buffer[count : self._held]
        self._buffer[: len(rest)] = rest
        self._held, self.offset = len(rest), self.offset + count

    def _unreadable(self, error: OSError) -> TrisectError:
        return TrisectError(f"{self.path}: cannot be read ({error.strerror}); check the file")


def refusal(path: Path, offset: int, reason: str) -> TrisectError:
    """The error for something at a byte offset of a file."""
    where = "decompressed byte" if _is_gzip(path) else "byte"
    return TrisectError(f"{path}: {where} {offset}: {reason}")


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(2) == b"\x1f\x8b"
