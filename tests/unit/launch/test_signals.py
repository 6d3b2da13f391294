"""Signals that wake a wait instead of ending the process."""

from __future__ import annotations

import os
import signal
import time

from trisect.launch.signals import SignalWaiter


def test_a_signal_ends_the_wait_and_is_told() -> None:
    with SignalWaiter([signal.SIGTERM, signal.SIGHUP]) as waiter:
        os.kill(os.getpid(), signal.SIGTERM)
        begin = time.monotonic()
        assert waiter.wait(10) == {signal.SIGTERM}
        assert time.monotonic() - begin < 5
        assert waiter.wait(0.01) == set()


def test_a_signal_that_was_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with SignalWaiter([signal.SIGHUP]) as waiter:
            os.kill(os.getpid(), signal.SIGHUP)
            assert waiter.wait(0.05) == set()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_handlers_are_as_before() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with SignalWaiter([signal.SIGTERM]):
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before
