"""Targets for launcher tests: torch-free, so that ranks start at once. The payload says what each does."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from trisect.results.layout import RunLayout


def act(payload: str, folder: Path) -> None:
    """Write a progress line, a trace and a record; in between do what payload["faults"][rank] names."""
    orders = json.loads(payload)
    rank = int(os.environ["RANK"])
    run = RunLayout(folder)
    print(f"rank {rank} says hello", flush=True)
    run.traces.mkdir(parents=True, exist_ok=True)
    hello = run.folder / "hello"
    hello.mkdir(exist_ok=True)
    (hello / str(rank)).touch()
    _wait_for_count(hello, int(os.environ["WORLD_SIZE"]))  # as in init_process_group
    if rank == 0:
        run.progress.write_text("1/2")
    if "release" in orders:
        _wait_for(Path(orders["release"]))
    fault = orders.get("faults", {}).get(str(rank), orders.get("others", "none"))
    FAULTS[fault](orders)
    run.trace(rank).write_text(f"trace of {os.environ['TRISECT_JOB_ID']} {orders.get('mark', '')}")
    if rank == 0:
        _wait_for_count(run.traces, int(os.environ["WORLD_SIZE"]))
        run.record.write_text(json.dumps({"environment": dict(os.environ), "argv": sys.argv}))


def _wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.05)


def _wait_for_count(folder: Path, count: int) -> None:
    while len(list(folder.iterdir())) < count:
        time.sleep(0.02)


def _raise(orders: dict[str, object]) -> None:
    time.sleep(0.3)
    raise ValueError("the detector is upside down")


def _peer_closed(orders: dict[str, object]) -> None:
    raise RuntimeError("[gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.1.2]:4242")


def _timed_out(orders: dict[str, object]) -> None:
    raise RuntimeError("[gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1000ms for recv operation")


def _disk_full(orders: dict[str, object]) -> None:
    Path(str(orders["full"])).write_bytes(b"0" * (64 << 20))


FAULTS = {
    "none": lambda orders: None,
    "raise": _raise,
    "sleep": lambda orders: time.sleep(120),
    "kill": lambda orders: os.kill(os.getpid(), signal.SIGKILL),
    "kill_supervisor": lambda orders: (os.kill(os.getppid(), signal.SIGKILL), time.sleep(120)),
    "exit_3": lambda orders: sys.exit(3),
    "vanish": lambda orders: os._exit(0),
    "peer_closed": _peer_closed,
    "timed_out": _timed_out,
    "disk_full": _disk_full,
}


def meet(payload: str, folder: Path) -> None:
    """Rank 0 listens on MASTER_PORT as torch would; every rank must reach the rank 0 of its own job."""
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    mark = json.loads(payload)["mark"].encode()
    peers = int(os.environ["WORLD_SIZE"]) - 1
    if int(os.environ["RANK"]) == 0:
        with socket.create_server(("", address[1]), backlog=64) as server:
            for _ in range(peers):
                connection, _ = server.accept()
                with connection:
                    connection.sendall(mark)
        return
    for _ in range(200):
        try:
            with socket.create_connection(address, timeout=30) as connection:
                said = connection.recv(1024)
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    else:
        raise RuntimeError(f"nobody listens at {address}")
    if said != mark:
        raise RuntimeError(f"met {said!r}, who is of another job than {mark!r}")


def log_like_nccl(payload: str, folder: Path) -> None:
    """Write to NCCL_DEBUG_FILE, whose %h and %p NCCL replaces by host and process."""
    name = os.environ["NCCL_DEBUG_FILE"].replace("%h", socket.gethostname()).replace("%p", str(os.getpid()))
    Path(name).write_text(f"NCCL INFO {os.environ['NCCL_DEBUG_SUBSYS']}\n")


def all_reduce(payload: str, folder: Path) -> None:
    """Torch alone: every rank adds its own number, and must get the sum of all."""
    import torch
    from torch import distributed

    distributed.init_process_group("gloo")
    mine = torch.full((1 << 20,), float(distributed.get_rank()))
    distributed.all_reduce(mine)
    world = distributed.get_world_size()
    distributed.destroy_process_group()
    if not torch.equal(mine, torch.full_like(mine, world * (world - 1) / 2)):
        raise ValueError(f"sum over {world} ranks is {mine[0].item()}")


def probe_corrupted(payload: str, folder: Path) -> None:
    """The product's probe, of which rank 1 gets one wrong value in its third all_reduce of 4,096 bytes."""
    from torch import distributed

    from trisect.worker import probe_worker

    as_it_was, seen = distributed.all_reduce, []

    def corrupt(buffer: Any) -> None:
        as_it_was(buffer)
        if buffer.numel() == 1024:
            seen.append(None)
        if buffer.numel() == 1024 and len(seen) == 3 and distributed.get_rank() == 1:
            buffer[7] += 1

    distributed.all_reduce = corrupt
    probe_worker.work(payload, folder)
