"""All_reduces timed in two cadences; filling and checking the buffers is outside every timed interval.

Isolated: a barrier before every all_reduce, so that no rank is late. Streamed: several in a row without one, as
nccl-tests does; the first, which follows a barrier, is not counted.
"""

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from trisect.worker import device
from trisect.worker.exact_sums import Sum

HOLD_CYCLES = 200_000
"""About 0.1 ms, in which a launch of an all_reduce is over."""


class Timed(NamedTuple):
    """What one rank timed at one size and cadence."""

    times_s: list[float]
    uncounted_s: list[float]
    wrong_values: list[int]
    """By check."""


def isolated(mine: Sum, count: int) -> Timed:
    """All_reduces after a barrier each."""
    times_s, wrong_values = [], []
    for k in range(count):
        mine.fill(k)
        _barrier(mine.buffer.device)
        if mine.buffer.is_cuda:
            # The device waits until both events are in its queue, so that launching is no part of the time.
            torch.cuda._sleep(HOLD_CYCLES)
        times_s += _timed(mine.buffer, 1)
        wrong_values.append(mine.wrong_values(k))
    return Timed(times_s, [], wrong_values)


def streamed(mine: Sum, chains: int, links: int) -> Timed:
    """Rows of `links` all_reduces of one buffer. An error in any of them is in the last one's result."""
    times_s, uncounted_s, wrong_values = [], [], []
    for k in range(chains):
        mine.fill(k)
        _barrier(mine.buffer.device)
        first_s, *others_s = _timed(mine.buffer, links)
        uncounted_s.append(first_s)
        times_s += others_s
        wrong_values.append(mine.wrong_values(k, links))
    return Timed(times_s, uncounted_s, wrong_values)


def _barrier(where: torch.device) -> None:
    device.synchronize(where)
    dist.barrier()
    device.synchronize(where)


def _timed(buffer: torch.Tensor, links: int) -> list[float]:
    """Seconds of each of `links` all_reduces in a row: on CUDA between events of the device, else on this clock."""
    now: Callable[[], Any] = _event if buffer.is_cuda else time.perf_counter
    moments = [now()]
    for _ in range(links):
        dist.all_reduce(buffer)
        moments.append(now())
    device.synchronize(buffer.device)
    if buffer.is_cuda:
        return [begin.elapsed_time(end) / 1e3 for begin, end in pairwise(moments)]
    return [end - begin for begin, end in pairwise(moments)]


def _event() -> torch.cuda.Event:
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event
