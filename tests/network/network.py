"""Hosts on a network whose rate is known: namespaces on a bridge, with a token bucket on each host's way out.

The namespaces have no names. Each is held by a process that ends when ours does, however that ends, and the kernel
removes the namespace with its last process: nothing can be left behind, and several networks do not meet.
"""

from __future__ import annotations

import os
import shutil
import subprocess

PACKAGES = ["iproute2", "procps", "util-linux"]
PROGRAMS = ["ip", "tc", "unshare", "nsenter", "sysctl"]

MTU = 9000
FRAME_BYTES = MTU + 14
"""Ethernet's header is counted by the bucket; its checksum, preamble and gap do not exist on a veth."""
SEGMENT_BYTES = MTU - 20 - 20 - 12
"""What a full frame carries: less the headers of IP and TCP, and TCP's timestamps."""
BURST_BYTES = 32_000
"""What a bucket that was idle lets through at once; every all_reduce follows compute, so each has it."""
QUEUE_BYTES = 1 << 17
"""What a connection may have waiting at its host's way out. Without a bound that is megabytes, and gloo's word that a
rank is ready for the next segment waits behind them: all_reduces then take up to a fifth longer, at random."""


class Network:
    """Hosts host1, host2, ... in one subnet, for as long as the context lasts."""

    def __init__(self, hosts: int) -> None:
        self.hosts = [f"host{k}" for k in range(1, hosts + 1)]
        self._holders: dict[str, subprocess.Popen[str]] = {}

    def __enter__(self) -> Network:
        try:
            self._build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pids(self) -> list[int]:
        """Of the process that holds each host."""
        return [self._holders[host].pid for host in self.hosts]

    def close(self) -> None:
        """End the holders."""
        for holder in self._holders.values():
            holder.communicate()  # closes its input, which ends it

    def _build(self) -> None:
        for name in ["switch", *self.hosts]:
            self._holders[name] = _hold(name)
        self.on("switch", "ip link add bridge0 type bridge")
        self.on("switch", f"ip link set bridge0 mtu {MTU} up")
        for k, (host, pid) in enumerate(zip(self.hosts, self.pids, strict=True), 1):
            self.on("switch", f"ip link add {host} type veth peer name eth0 netns {pid}")
            self.on("switch", f"ip link set {host} mtu {MTU} master bridge0 up")
            self.on(host, f"sysctl -qw net.ipv4.tcp_limit_output_bytes={QUEUE_BYTES}")
            self.on(host, "ip link set lo up")
            self.on(host, f"ip address add {address(k)}/24 dev eth0")
            self.on(host, f"ip link set eth0 mtu {MTU} up")

    def on(self, name: str, command: str) -> str:
        """What a command prints on one host, or on the switch."""
        return run(f"nsenter --net --target {self._holders[name].pid} {command}")


def address(k: int) -> str:
    """Of host k, counted from 1."""
    return f"10.0.0.{k}"


def bucket(mbit_per_s: int, burst_bytes: int) -> str:
    """The command, on a host, that sets the rate of its way out."""
    return f"tc qdisc replace dev eth0 root tbf rate {mbit_per_s}mbit burst {burst_bytes} latency 200ms"


def run(command: str) -> str:
    """What a command prints.

    Raises:
        RuntimeError: it failed.
    """
    done = subprocess.run(command.split(), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def _hold(name: str) -> subprocess.Popen[str]:
    """A process in new namespaces of the network and the host's name, that ends with its input."""
    script = f"echo {name} > /proc/sys/kernel/hostname && echo ready && exec cat"
    holder = subprocess.Popen(
        ["unshare", "--net", "--uts", "sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a Ctrl-C goes to pytest, which ends the ranks first
    )
    assert holder.stdout is not None
    if holder.stdout.readline() != "ready\n":
        holder.communicate()
        raise RuntimeError("no namespace could be made; see the lines above")
    return holder


def why_not() -> str | None:
    """Why no network can be built here, or None; installs Debian's packages where it may."""
    if os.geteuid() != 0:
        return "a network of namespaces needs root"
    if not all(shutil.which(program) for program in PROGRAMS):
        if shutil.which("apt-get") is None:
            return f"one of {', '.join(PROGRAMS)} is missing, and this is no Debian to install it on"
        quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-yqq", *PACKAGES]):
            done = subprocess.run(command, env=quiet, capture_output=True, text=True)
            if done.returncode:
                return f"{' and '.join(PACKAGES)} could not be installed: {done.stderr.strip().splitlines()[-1:]}"
    try:
        with Network(1) as network:
            network.on("host1", bucket(mbit_per_s=1, burst_bytes=BURST_BYTES))
    except RuntimeError as error:
        return str(error)
    return None
