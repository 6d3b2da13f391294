"""One launch: what is launched, how it reports progress, and how it is stopped."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

import psutil

from trisect.config.machine import Machine
from trisect.launch.job import Job
from trisect.launch.signals import SignalWaiter
from trisect.results.layout import RunLayout

Report = Callable[[str], None]

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Owner:
    """A process on whose behalf another one works, told from a later one that gets the same number."""

    pid: int
    created_s: float

    @classmethod
    def of(cls, pid: int | None = None) -> Self:
        """The process of that number, which must run; by default this one."""
        pid = os.getpid() if pid is None else pid
        return cls(pid, psutil.Process(pid).create_time())

    def alive(self) -> bool:
        """Whether that very process still runs."""
        try:
            process = psutil.Process(self.pid)
            return process.create_time() == self.created_s and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False


class Interrupted(BaseException):
    """The launcher is to stop: by a signal, or because the process it works for is gone (number 0)."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@dataclass
class Launch:
    """What every backend works with."""

    job: Job
    machine: Machine
    layout: RunLayout
    report: Report
    waiter: SignalWaiter
    owner: Owner | None
    _said: str = field(default="", init=False)

    def say(self, what: str) -> None:
        """Report it, unless that was the last thing reported."""
        if what != self._said:
            self._said = what
            # A terminal that is gone or a full disk is no reason to leave a job unattended.
            with suppress(OSError):
                self.report(f"{self.job.name}: {what}")

    def wait(self, seconds: float) -> None:
        """Sleep.

        Raises:
            Interrupted: by a signal, or because the owner is gone.
        """
        stop = self.waiter.wait(seconds)
        if stop:
            raise Interrupted(min(stop))
        if self.owner is not None and not self.owner.alive():
            raise Interrupted(0)
