"""What the launcher starts in every rank: go to the rank's own host, then do what was ordered there, by the product."""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from trisect.results.layout import RunLayout

from .network import BURST_BYTES, bucket
from .network import run as command


@dataclass(frozen=True)
class Order:
    """One run of a launch, in a process group of its own."""

    folder: str
    """Where it writes, below the launch's own folder."""
    payload: str
    mbit_per_s: int
    """Of every host's way out."""
    burst_bytes: int = BURST_BYTES
    target: str = "trisect.worker.run_worker:work"
    slow_s: Mapping[str, float] = field(default_factory=dict)
    """By rank, a sleep at the start of each denoiser step."""
    speed: float | None = None
    """Of every host, in cores; None: as fast as it comes."""


def payload(hosts: list[int], orders: list[Order]) -> str:
    """What `work` reads: by rank, the process that holds its host; and what is to be done."""
    return json.dumps({"hosts": hosts, "orders": [asdict(order) for order in orders]})


def work(payload: str, folder: Path) -> None:
    """Carry out every order as this rank."""
    read = json.loads(payload)
    rank = int(os.environ["RANK"])
    move_to(read["hosts"][rank])
    from trisect.worker import run_worker  # imports torch, whose threads must be born on this host

    go_first()
    port = int(os.environ["MASTER_PORT"])
    for k, order in enumerate(Order(**order) for order in read["orders"]):
        os.environ["MASTER_PORT"] = str(port + k)  # a rank that is ahead must not meet the store of the run before
        command(bucket(order.mbit_per_s, order.burst_bytes))
        files = RunLayout(folder / order.folder)
        files.logs.mkdir(parents=True, exist_ok=True)
        wire = files.folder / f"wire-{rank}.json"
        with (
            patch.object(run_worker, "build", slowed(run_worker.build, order.slow_s.get(str(rank), 0.0))),
            patch.object(run_worker, "measure", watched(run_worker.measure, wire, order.speed)),
        ):
            module, _, name = order.target.partition(":")
            getattr(importlib.import_module(module), name)(order.payload, files.folder)


def move_to(pid: int) -> None:
    """Put this process, which must have one thread, into the namespaces of another."""
    libc = ctypes.CDLL(None, use_errno=True)
    for kind in ("net", "uts"):
        with Path(f"/proc/{pid}/ns/{kind}").open() as namespace:
            if libc.setns(namespace.fileno(), 0):
                raise OSError(ctypes.get_errno(), f"setns to the {kind} namespace of process {pid}")
    os.environ |= {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}


def go_first() -> None:
    """Before whatever else runs on this machine: a rank that waits for a core looks like a slow network."""
    with suppress(PermissionError):  # some containers forbid it; on a quiet machine it is not needed
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def slowed(build: Callable[..., Any], seconds: float) -> Callable[..., Any]:
    """`worker.build`, of whose solver each denoiser step begins with a sleep."""

    def built(*arguments: Any) -> Any:
        solver = build(*arguments)
        solver.tiling.register_forward_pre_hook(lambda *_: time.sleep(seconds))
        return solver

    return built


def watched(measure: Callable[..., Any], wire: Path, speed: float | None) -> Callable[..., Any]:
    """`worker.measure` at this speed, which also says what its host has sent, and in how many iterations."""

    def measured(solver: Any, ctx: Any, iterations: Any, *rest: Any) -> Any:
        before = sent_bytes()
        with at_speed(speed):
            result = measure(solver, ctx, iterations, *rest)
        count = iterations.warmup + iterations.measured + iterations.unprofiled
        wire.write_text(json.dumps({"bytes": sent_bytes() - before, "iterations": count}))
        return result

    return measured


@contextmanager
def at_speed(cores: float | None) -> Iterator[None]:
    """Compute that takes this rank's core a second takes 1 / `cores` seconds, by sleep before the next collective.

    So many hosts fit on few cores and none slows another, as long as all of them together need no more cores.
    """
    if cores is None:
        yield
        return
    from torch import distributed

    since = [time.perf_counter(), time.thread_time()]

    def paced(collective: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            until = since[0] + (time.thread_time() - since[1]) / cores
            time.sleep(max(0.0, until - time.perf_counter()))
            result = collective(*arguments, **options)
            since[:] = time.perf_counter(), time.thread_time()
            return result

        return call

    with ExitStack() as patches:
        for name in ("all_reduce", "broadcast", "barrier"):
            patches.enter_context(patch.object(distributed, name, paced(getattr(distributed, name))))
        yield


def sent_bytes() -> int:
    """By this host, as its bucket counts them."""
    return int(json.loads(command("tc -s -json qdisc show dev eth0"))[0]["bytes"])
