"""Memory: peak of each section (allocated on CUDA, resident of the process on CPU), and what is free."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import torch

from trisect.worker.device import synchronize

_CLEAR_REFS = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")


class PeakMemory:
    """Opens sections like torch.profiler.record_function and notes the peak of each, in bytes.

    It waits for the device at both ends of a section, so it runs in an iteration that is not timed.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.peak_bytes: dict[str, int] = {}
        self.reserved_bytes: dict[str, int] = {}
        self.least_free_bytes = free_bytes(device)

    @contextmanager
    def __call__(self, section: str) -> Iterator[None]:
        synchronize(self.device)
        self._reset()
        yield
        synchronize(self.device)
        self.peak_bytes[section] = max(self._read(), self.peak_bytes.get(section, 0))
        if self.device.type == "cuda":
            reserved = torch.cuda.max_memory_reserved(self.device)
            self.reserved_bytes[section] = max(reserved, self.reserved_bytes.get(section, 0))
        self.least_free_bytes = min(self.least_free_bytes, free_bytes(self.device))

    def _reset(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
        elif _CLEAR_REFS.exists():
            _CLEAR_REFS.write_text("5")  # resets VmHWM, see proc(5)

    def _read(self) -> int:
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device)
        if _STATUS.exists() and (found := re.search(r"VmHWM:\s+(\d+) kB", _STATUS.read_text())):
            return int(found[1]) * 1024
        return psutil.Process().memory_info().rss


def free_bytes(device: torch.device) -> int:
    """Memory that nobody uses: of the device on CUDA, of this host on CPU, which its ranks share."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return psutil.virtual_memory().available
