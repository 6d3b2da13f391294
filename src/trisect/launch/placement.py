"""Where a rank runs, whether that is where it should, and how ranks find each other."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import submitit

from trisect.host import usable_cores
from trisect.launch.job import JsonRecord


@dataclass(frozen=True)
class Placement:
    """Where one rank of a job runs."""

    rank: int
    world_size: int
    local_rank: int
    local_world_size: int
    node: int
    host: str
    first_host: str
    job_id: str
    restarts: int
    """How often SLURM has requeued the job before this start."""

    @classmethod
    def here(cls, variables: Mapping[str, str]) -> Self:
        """Where this process runs, which submitit has started."""
        env = submitit.JobEnvironment()
        local = env.cluster == "local"
        host = socket.gethostname()
        return cls(
            rank=env.global_rank,
            world_size=env.num_tasks,
            local_rank=env.local_rank,
            local_world_size=env.num_tasks // env.num_nodes,
            node=env.node,
            host=host if local else variables.get("SLURMD_NODENAME", host),
            first_host="127.0.0.1" if local else env.hostnames[0],
            job_id=env.job_id,
            restarts=int(variables.get("SLURM_RESTART_COUNT", 0)),
        )

    def mistake(self, ranks: int) -> str | None:
        """What is wrong with it: another world size than intended, or consecutive ranks torn apart."""
        if self.world_size != ranks:
            return f"world size is {self.world_size}, intended {ranks}"
        intended = divmod(self.rank, self.local_world_size)
        if (self.node, self.local_rank) != intended:
            return (
                f"rank {self.rank} runs on node {self.node} as local rank {self.local_rank}, "
                f"intended node {intended[0]} as local rank {intended[1]}"
            )
        return None


def device_of(placement: Placement, visible: str | None) -> str | None:
    """The entry of CUDA_VISIBLE_DEVICES that belongs to this rank, or None where it names none."""
    devices = [entry for entry in (visible or "").split(",") if entry]
    return devices[placement.local_rank] if placement.local_rank < len(devices) else None


class Rendezvous(JsonRecord):
    """Where rank 0 listens."""

    host: str
    port: int


def reserve_port() -> socket.socket:
    """A bound socket that keeps its port from every other job of this host for as long as it is open.

    torch can still listen there: Linux lets a second socket with SO_REUSEADDR bind a port on which nobody
    listens, but never hands out such a port for the asking.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("", 0))
    return holder


def cores_of_rank(variables: Mapping[str, str], local_world_size: int) -> int:
    """Cores of this host that the job's ranks share: what SLURM gave to each task, never more than there are."""
    available = len(usable_cores())
    per_task = variables.get("SLURM_CPUS_PER_TASK")
    return min(available, int(per_task) * local_world_size) if per_task else available
