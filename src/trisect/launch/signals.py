"""Signals that are noted when they come, and acted on where that is safe."""

import os
import select
import signal
from collections.abc import Iterable
from types import FrameType
from typing import Self


class SignalWaiter:
    """While entered, the given signals only wake `wait`, which returns their numbers.

    Only in the main thread. A signal that was ignored before (SIGHUP under nohup) stays ignored.
    """

    def __init__(self, signals: Iterable[int]) -> None:
        self._signals = [s for s in signals if signal.getsignal(s) is not signal.SIG_IGN]
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        self._read, self._write = os.pipe()
        for end in (self._read, self._write):
            os.set_blocking(end, False)
        self._wakeup_before = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in self._signals:
            self._before[number] = signal.signal(number, _note)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self._read)
        os.close(self._write)

    def wait(self, seconds: float) -> set[int]:
        """Sleep for at most `seconds`, less if a signal comes or has come since the last call."""
        select.select([self._read], [], [], seconds)
        try:
            return set(os.read(self._read, 4096))
        except BlockingIOError:
            return set()


def _note(number: int, frame: FrameType | None) -> None:
    """The wake-up descriptor has already taken the number."""
