"""One launch: what is launched, how it reports progress, and how it is stopped."""

import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from trisect.config.machine import Machine
from trisect.launch.job import Job
from trisect.launch.owner import Owner
from trisect.launch.signals import SignalWaiter
from trisect.results.layout import RunLayout

Report = Callable[[str], None]

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
