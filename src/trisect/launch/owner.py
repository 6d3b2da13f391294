"""A process on whose behalf another one works."""

from __future__ import annotations

import os
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class Owner:
    """One process, told from a later one that gets the same number."""

    pid: int
    created_s: float

    @classmethod
    def of(cls, pid: int | None = None) -> Owner:
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
