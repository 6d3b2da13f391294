"""What submitit runs as one task: a supervisor that starts the rank's own process and records how it ends.

The measured process is a child, so that its environment is right from its first instruction, nothing of the
launcher runs in it, and a death by any signal or exit code is seen by someone who can still write it down.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass

import psutil

from trisect.config.machine import Machine
from trisect.launch import rank_main
from trisect.launch.environment import of_rank
from trisect.launch.job import Attempt, Job, JobFolder
from trisect.launch.outcome import Outcome, Status
from trisect.launch.placement import Placement, Rendezvous, cores_of_rank, device_of, reserve_port
from trisect.launch.session import Owner
from trisect.launch.signals import SignalWaiter
from trisect.results.layout import RunLayout

SUPERVISOR_LOOK_S = 2.0
"""How often a supervisor checks whether its run is still wanted."""
PEERS_S = 2.0
"""What a failed rank waits before it leaves, so that its peers' own failures are recorded and not cut short."""
TOLD_S = 1.0
"""How much later than its child a supervisor may be told to end."""
TOPOLOGY_S = 30.0

ENDING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
NOTED = ENDING | {signal.SIGCHLD, signal.SIGUSR2}
"""SIGUSR2 is submitit's "time is nearly up": it comes early and coarsely, and there is nothing to save."""


class RankError(RuntimeError):
    """Makes the task exit with a code that is not 0; the record of why is the Outcome."""


@dataclass(frozen=True)
class Supervisor:
    """Called once in every task of the job."""

    job: Job
    machine: Machine
    layout: RunLayout
    folder: JobFolder
    owner: Owner | None
    """None where the job outlives the launcher."""
    visible_devices: str | None
    """The launcher's CUDA_VISIBLE_DEVICES, which submitit's local executor overwrites; None: not set."""

    def __call__(self) -> None:
        """Run this task's rank to its end.

        Raises:
            RankError: it did not return.
        """
        with SignalWaiter(NOTED) as waiter:
            placement = Placement.here(os.environ)
            attempt = self.folder.attempt(placement.restarts)
            attempt.run.logs.mkdir(parents=True, exist_ok=True)
            outcome = self._run(placement, attempt, waiter)
            outcome.write(attempt.outcome(placement.rank))
            if outcome.status not in ("ok", "stopped"):
                waiter.wait(PEERS_S)
        if outcome.status != "ok":
            raise RankError(outcome.model_dump_json())

    def _run(self, placement: Placement, attempt: Attempt, waiter: SignalWaiter) -> Outcome:
        variables = dict(os.environ)
        if self.owner is not None:
            del variables["CUDA_VISIBLE_DEVICES"]
            variables |= {} if self.visible_devices is None else {"CUDA_VISIBLE_DEVICES": self.visible_devices}
        begun = self._begun(placement, variables)
        mistake = placement.mistake(self.job.ranks) or self._payload_mistake()
        if mistake:
            return _ended(begun, "refused", error=mistake)
        with reserve_port() as port:
            rendezvous = self._meet(placement, attempt, port, waiter)
            if rendezvous is None:
                return _ended(begun, "stopped")
            cores = cores_of_rank(variables, placement.local_world_size)
            variables = of_rank(variables, placement, rendezvous, self.machine, attempt, cores)
            self._record_topology(placement, attempt)
            return self._supervise(begun, attempt, variables, waiter)

    def _begun(self, placement: Placement, variables: dict[str, str]) -> Outcome:
        return Outcome(
            rank=placement.rank,
            world_size=placement.world_size,
            local_rank=placement.local_rank,
            node=placement.node,
            host=placement.host,
            device=device_of(placement, variables.get("CUDA_VISIBLE_DEVICES")),
            payload_sha256=self.job.payload_sha256,
            supervisor_pid=os.getpid(),
            pid=None,
            status="running",
            started_s=time.time(),
        )

    def _payload_mistake(self) -> str | None:
        if self.folder.payload.read_text() == self.job.payload:
            return None
        return f"{self.folder.payload} is not the configuration that was submitted; rerun"

    def _meet(
        self, placement: Placement, attempt: Attempt, port: socket.socket, waiter: SignalWaiter
    ) -> Rendezvous | None:
        """Say or learn where rank 0 listens; None where the job ends before that."""
        if placement.rank == 0:
            meeting = Rendezvous(host=placement.first_host, port=port.getsockname()[1])
            meeting.write(attempt.rendezvous)
            return meeting
        while self._wanted(attempt):
            if found := Rendezvous.read(attempt.rendezvous):
                return found
            if waiter.wait(0.1) & ENDING:
                return None
        return None

    def _record_topology(self, placement: Placement, attempt: Attempt) -> None:
        """Keep what the driver says about this node, once a node."""
        if placement.local_rank or shutil.which("nvidia-smi") is None:
            return
        with (attempt.run.logs / f"topology-{placement.host}.txt").open("w") as file:
            for command in (["nvidia-smi"], ["nvidia-smi", "topo", "-m"]):
                try:
                    subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, timeout=TOPOLOGY_S)
                except subprocess.TimeoutExpired:
                    file.write(f"{' '.join(command)}: no answer within {TOPOLOGY_S:.0f} s\n")

    def _supervise(self, begun: Outcome, attempt: Attempt, variables: dict[str, str], waiter: SignalWaiter) -> Outcome:
        if self.machine.backend == "nccl":
            attempt.nccl.mkdir(exist_ok=True)
        report_read, report_write = os.pipe()
        arguments = [os.getpid(), report_write, self.job.target, self.folder.payload, attempt.run.folder]
        with self.layout.log(begun.rank).open("a") as log:
            child = subprocess.Popen(
                # -P: the folder of rank_main.py is not a place to import from.
                [sys.executable, "-P", "-u", rank_main.__file__, *map(str, arguments)],
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[report_write],
                start_new_session=True,  # a Ctrl-C in the terminal goes to the launcher alone, which ends the ranks
            )
        os.close(report_write)
        begun = begun.model_copy(update={"pid": child.pid})
        begun.write(attempt.outcome(begun.rank))
        stopped = False
        while child.poll() is None:
            if waiter.wait(SUPERVISOR_LOOK_S) & ENDING or not self._wanted(attempt):
                stopped = True
                end_trees([child.pid], grace_s=1.0)
        if child.returncode == -signal.SIGTERM and not stopped:
            # SLURM ends a step by telling every process in it, this one perhaps a moment later than its child.
            stopped = bool(waiter.wait(TOLD_S) & ENDING)
        return _ended(begun, *_ending(child.returncode, _told(report_read), stopped))

    def _wanted(self, attempt: Attempt) -> bool:
        """False once the launcher of a local run is gone, SLURM has started the job anew, or the launch is given up."""
        if self.owner is not None and not self.owner.alive():
            return False
        return attempt.folder.is_dir() and attempt == self.folder.attempt(self.folder.latest)


def _told(report_fd: int) -> str:
    """What the rank's process said last; a forked child of it may still hold the other end."""
    os.set_blocking(report_fd, False)
    with os.fdopen(report_fd, "rb") as pipe:
        return (pipe.read() or b"").decode(errors="replace")


def _ending(code: int, told: str, stopped: bool) -> tuple[Status, int | None, str | None]:
    """Status, code and error of a process that ended with `code` (negative: by that signal)."""
    if told.startswith(rank_main.RAISED):
        return "raised", code, told.removeprefix(rank_main.RAISED)
    if code == 0 and told == rank_main.RETURNED:
        return "ok", code, None
    if stopped:
        return "stopped", None, None
    if code < 0:
        return "killed", -code, None
    return "exited", code, None


def _ended(begun: Outcome, status: Status, code: int | None = None, error: str | None = None) -> Outcome:
    return begun.model_copy(update={"status": status, "code": code, "error": error, "ended_s": time.time()})


def end_trees(pids: list[int], grace_s: float) -> None:
    """End processes and all their descendants: SIGTERM, and after `grace_s` seconds SIGKILL."""
    processes: list[psutil.Process] = []
    for pid in pids:
        try:
            root = psutil.Process(pid)
            processes += [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            continue
    for signalled in (psutil.Process.terminate, psutil.Process.kill):
        for process in processes:
            try:
                signalled(process)
            except psutil.NoSuchProcess:
                continue
        _, processes = psutil.wait_procs(processes, timeout=grace_s)
