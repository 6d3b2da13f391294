"""A real SLURM on this host: controller, accounting with its database, and several node daemons with fake GPUs.

    python tests/slurm/cluster.py up [NODES]   start one to play with, and say how to use it
    python tests/slurm/cluster.py down         stop it

Needs root on Debian, where missing packages are installed. Everything lives in one folder: configuration, keys,
database, sockets, logs. Each node daemon has its own host name and its own /etc/hosts, so nothing of this host changes.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

PACKAGES = ["slurm-wlm", "slurmdbd", "munge", "mariadb-server"]
PROGRAMS = ["slurmctld", "slurmd", "slurmdbd", "sbatch", "munged", "mariadbd", "mariadb-install-db"]
DAEMONS = {"munged", "mariadbd", "slurmdbd", "slurmctld", "slurmd", "slurmstepd"}
PLAYGROUND = Path(tempfile.gettempdir()) / "trisect-slurm"
GPUS_PER_NODE = 4

SLURM_CONF = """\
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={home}/munge.socket,cred_expire=10
CryptoType=crypto/munge
SlurmctldPort={ctld_port}
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd.%n.pid
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=5
MpiDefault=none
SwitchType=switch/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
GresTypes=gpu
{nodes}
PartitionName=lab Nodes=ALL Default=YES MaxTime=60 DefaultTime=10 PriorityTier=10 PreemptMode=OFF
PartitionName=low Nodes=ALL MaxTime=60 DefaultTime=10 PriorityTier=1 PreemptMode=REQUEUE
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2,sched_min_interval=100000,batch_sched_delay=0
PriorityType=priority/basic
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=10
InactiveLimit=0
KillWait=5
MinJobAge=300
FirstJobId={first_job}
JobRequeue=1
UnkillableStepTimeout=60
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={dbd_port}
AccountingStoragePass={home}/munge.socket
AccountingStorageTRES=gres/gpu
"""

SLURMDBD_CONF = """\
AuthType=auth/munge
AuthInfo=socket={home}/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={dbd_port}
SlurmUser=root
PidFile={home}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm_acct_db
CommitDelay=1
"""


class Cluster:
    """Daemons of one cluster, known by the pids in their folder, so that another process can stop them."""

    def __init__(self, home: Path, nodes: int = 4) -> None:
        self.home = home
        self.nodes = [f"node{k}" for k in range(1, nodes + 1)]

    @property
    def variables(self) -> dict[str, str]:
        """What a client needs in its environment."""
        return {"SLURM_CONF": str(self.home / "slurm.conf")}

    def start(self) -> None:
        """Start everything, and return when all nodes are idle."""
        for folder in ("state", "spool", "log", "fakegpu", "mysql"):
            (self.home / folder).mkdir(parents=True)
        self._configure()
        self._start_munge()
        self._start_database()
        self.start_accounting()
        self.command("sacctmgr", "-i", "add", "cluster", "lab")
        self.start_controller()
        for node in self.nodes:
            self.start_node(node)
        self.wait_idle()

    def _configure(self) -> None:
        base = _free_ports(len(self.nodes) + 2)
        nodes = [
            f"NodeName={node} NodeAddr=127.0.1.{k} Port={base + 1 + k} CPUs=64 Sockets=1 CoresPerSocket=64 "
            f"ThreadsPerCore=1 RealMemory=24000 Gres=gpu:{GPUS_PER_NODE} State=UNKNOWN"
            for k, node in enumerate(self.nodes, 1)
        ]
        values = {
            "home": self.home,
            "host": socket.gethostname(),
            "ctld_port": base,
            "dbd_port": base + 1,
            "nodes": "\n".join(nodes),
            # Grows with time: ids that start again at 1 would find the files of old jobs.
            "first_job": int(time.time()) % 50_000_000 + 1,
        }
        (self.home / "slurm.conf").write_text(SLURM_CONF.format(**values))
        dbd = self.home / "slurmdbd.conf"
        dbd.touch(mode=0o600)
        dbd.write_text(SLURMDBD_CONF.format(**values))
        for k in range(GPUS_PER_NODE):
            device = self.home / "fakegpu" / f"gpu{k}"
            os.mknod(device, 0o20666, os.makedev(1, 3))  # as /dev/null
        names = f"node[1-{len(self.nodes)}]"
        gres = f"AutoDetect=off\nNodeName={names} Name=gpu File={self.home}/fakegpu/gpu[0-{GPUS_PER_NODE - 1}]\n"
        (self.home / "gres.conf").write_text(gres)
        addresses = "".join(f"127.0.1.{k} {node}\n" for k, node in enumerate(self.nodes, 1))
        (self.home / "hosts").write_text(Path("/etc/hosts").read_text() + addresses)

    def _start_munge(self) -> None:
        key = self.home / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        places = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munge.pid", "seed-file": "munge.seed"}
        options = [f"--{name}={self.home / file}" for name, file in places.items()]
        # --force: munged dislikes that a temporary folder can be written by all.
        self._daemon(
            "munged", ["munged", "--foreground", "--force", f"--log-file={self.home}/log/munged.log", *options]
        )
        self._until("munge", lambda: (self.home / "munge.socket").exists())

    def _start_database(self) -> None:
        data = f"--datadir={self.home}/mysql"
        self.command(
            "mariadb-install-db", "--no-defaults", "--user=root", data, "--auth-root-authentication-method=socket"
        )
        small = ["--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=2", "--performance-schema=OFF"]
        sockets = ["--skip-networking", f"--socket={self.home}/mysql.sock", f"--pid-file={self.home}/mysql.pid"]
        self._daemon("mariadbd", ["mariadbd", "--no-defaults", "--user=root", data, *sockets, *small])
        self._until("mariadb", lambda: (self.home / "mysql.sock").exists())

    def start_accounting(self) -> None:
        """Start slurmdbd."""
        # Debian's client library takes the socket's place from here, not from slurmdbd.conf.
        self._daemon("slurmdbd", ["slurmdbd", "-D"], MYSQL_UNIX_PORT=f"{self.home}/mysql.sock")
        self._until("slurmdbd", lambda: self.answers("sacctmgr", "-n", "show", "cluster"))

    def start_controller(self) -> None:
        """Start slurmctld."""
        self._daemon("slurmctld", ["slurmctld", "-D"])
        self._until("slurmctld", lambda: self.answers("sinfo"))

    def start_node(self, node: str) -> None:
        """Start the slurmd of one node, which believes to be a host of that name."""
        script = f'hostname {node} && mount --bind "$0" /etc/hosts && exec slurmd -D -N {node}'
        self._daemon(node, ["unshare", "--uts", "--mount", "sh", "-c", script, str(self.home / "hosts")])

    def wait_idle(self) -> None:
        """Return when every node is idle."""
        self._until("all nodes idle", self._all_idle)

    def _all_idle(self) -> bool:
        states = self.command("sinfo", "-h", "-N", "-p", "lab", "-o", "%T").split()
        if any(state.startswith(("down", "drain")) for state in states):
            self.answers("scontrol", "update", "nodename=ALL", "state=resume")
        return states == ["idle"] * len(self.nodes)

    def command(self, *arguments: str) -> str:
        """What a client program of this cluster prints."""
        done = subprocess.run(arguments, env=os.environ | self.variables, capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise RuntimeError(f"{' '.join(arguments)}: {done.stderr or done.stdout}")
        return done.stdout

    def answers(self, *arguments: str) -> bool:
        """Whether a client program of this cluster succeeds."""
        return subprocess.run(arguments, env=os.environ | self.variables, capture_output=True).returncode == 0

    def queue(self, name: str) -> list[str]:
        """Ids of the jobs of that name that have not ended."""
        return self.command("squeue", "-h", f"--name={name}", "-o", "%A").split()

    def submitted(self) -> int:
        """How many jobs were ever submitted to this cluster, by the controller's own counter."""
        shown = self.command("scontrol", "show", "config")
        next_id = next(line.split("=")[1] for line in shown.splitlines() if line.startswith("NEXT_JOB_ID"))
        first = next(line.split("=")[1] for line in shown.splitlines() if line.startswith("FirstJobId"))
        return int(next_id) - int(first)

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Kill one daemon as a crash would, and none of its children; with SIGTERM it saves its state first."""
        os.kill(self._pids()[name], number)
        self._until(f"{name} gone", lambda: not _alive(self._pids()[name]))

    def stop(self) -> None:
        """End all jobs and daemons, and remove the folder."""
        if (self.home / "slurm.conf").exists() and self.answers("scancel", "--full", "-u", "root"):
            with contextlib.suppress(RuntimeError):
                self._until("queue empty", lambda: not self.command("squeue", "-h"), seconds=30)
        ours = self.processes()
        for number in (signal.SIGTERM, signal.SIGKILL):
            for process in ours:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.send_signal(number)
            _, ours = psutil.wait_procs(ours, timeout=10)
        shutil.rmtree(self.home, ignore_errors=True)

    def processes(self) -> list[psutil.Process]:
        """All that belongs to the cluster, orphans included."""
        return [process for process in psutil.process_iter() if self._owns(process)]

    def _owns(self, process: psutil.Process) -> bool:
        """Whether it is a daemon of this cluster or a task of its jobs."""
        try:
            if process.name() in DAEMONS:
                return Path(process.cwd()).is_relative_to(self.home)
            variables = process.environ()
        except psutil.Error:
            return False
        return "SLURM_JOB_ID" in variables and variables.get("SLURM_CONF") == self.variables["SLURM_CONF"]

    def _daemon(self, name: str, command: list[str], **variables: str) -> None:
        with (self.home / "log" / f"{name}.out").open("a") as log:
            process = subprocess.Popen(
                command,
                cwd=self.home,  # by which stop() knows daemons; some overwrite their environment
                env=_plain_environment() | self.variables | variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        pids = self._pids() | {name: process.pid}
        (self.home / "pids.json").write_text(json.dumps(pids))

    def _pids(self) -> dict[str, int]:
        try:
            return json.loads((self.home / "pids.json").read_text())
        except FileNotFoundError:
            return {}

    def _until(self, what: str, ready: Callable[[], bool], seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > deadline:
                raise RuntimeError(f"{what}: not within {seconds:.0f} s; see {self.home}/log")
            time.sleep(0.1)


def _plain_environment() -> dict[str, str]:
    """This environment without a virtual environment's paths: daemons hand theirs on to nobody."""
    return {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}


def _free_ports(count: int) -> int:
    """The first of `count` consecutive ports that are free now, below those the kernel hands out."""
    for base in range(20_000 + os.getpid() % 5000, 31_000, count):
        if all(_free(base + k) for k in range(count + 1)):
            return base
    raise RuntimeError("no free ports")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def _alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def why_not() -> str | None:
    """Why no cluster can be started here, or None; installs Debian's packages where it may."""
    if os.geteuid() != 0:
        return "a SLURM cluster needs root here"
    if all(shutil.which(program) for program in PROGRAMS):
        return None
    if shutil.which("apt-get") is None:
        return "SLURM is not installed, and this is no Debian to install it on"
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-yqq", "--no-install-recommends", *PACKAGES]):
        done = subprocess.run(command, env=quiet, capture_output=True, text=True)
        if done.returncode:
            return f"SLURM could not be installed: {done.stderr.strip().splitlines()[-1:]}"
    return None


def main(arguments: list[str]) -> int:
    """The command line."""
    verb, *rest = arguments or ["help"]
    cluster = Cluster(PLAYGROUND, nodes=int(rest[0]) if rest else 4)
    if verb == "down":
        cluster.stop()
        return 0
    reason = why_not()
    if verb != "up" or reason:
        print(reason or __doc__, file=sys.stderr)
        return 2
    if PLAYGROUND.exists():
        print(f"{PLAYGROUND} exists already; `down` first", file=sys.stderr)
        return 2
    cluster.start()
    print(cluster.command("sinfo", "-N"), end="")
    print(f"Use it with: export SLURM_CONF={cluster.variables['SLURM_CONF']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
