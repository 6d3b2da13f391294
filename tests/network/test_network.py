"""The network itself: several at once, and nothing left of any of them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from . import network
from .network import Network

pytestmark = pytest.mark.usefixtures("possible")


def gone(pids: list[int]) -> bool:
    """Within a moment."""
    deadline = time.monotonic() + 10
    while any(map(psutil.pid_exists, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(psutil.pid_exists, pids))


def test_two_networks_do_not_meet() -> None:
    with Network(2) as one, Network(2) as other:
        pids = one.pids + other.pids
        shown = [net.on("host1", "ip -brief address show dev eth0") for net in (one, other)]
        assert all("10.0.0.1/24" in line for line in shown)
        assert len({Path(f"/proc/{pid}/ns/net").readlink() for pid in [*pids, "self"]}) == 5
    assert gone(pids)


def test_a_network_that_cannot_be_built_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {child.pid for child in psutil.Process().children()}
    monkeypatch.setattr(network, "address", lambda k: "no address")
    with pytest.raises(RuntimeError, match="ip address add no address"), Network(2):
        pass
    assert gone([child.pid for child in psutil.Process().children() if child.pid not in before])


def test_a_killed_owner_leaves_nothing() -> None:
    script = f"from {network.__name__} import *; n = Network(2).__enter__(); print(*n.pids, flush=True); input()"
    owner = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    pids = [int(pid) for pid in owner.stdout.readline().split()]
    assert len(pids) == 2
    owner.kill()
    owner.communicate()
    assert gone(pids)
