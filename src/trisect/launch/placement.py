"""Where a rank stands, whether that is where it should stand, and how ranks find each other."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import submitit
from pydantic import BaseModel, ConfigDict, ValidationError

from trisect.host import usable_cores, write_whole


@dataclass(frozen=True)
class Placement:
    """One rank's place in its job."""

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
    def here(cls, variables: Mapping[str, str]) -> Placement:
        """The place of this process, which submitit has started."""
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
                f"rank {self.rank} stands on node {self.node} as local rank {self.local_rank}, "
                f"intended node {intended[0]} as local rank {intended[1]}"
            )
        return None


def device_of(place: Placement, visible: str | None) -> str | None:
    """The entry of CUDA_VISIBLE_DEVICES that belongs to this rank, or None where it names none."""
    devices = [entry for entry in (visible or "").split(",") if entry]
    return devices[place.local_rank] if place.local_rank < len(devices) else None


class Rendezvous(BaseModel):
    """Where rank 0 listens."""

    model_config = ConfigDict(frozen=True)

    host: str
    port: int

    def write(self, path: Path) -> None:
        """Write whole or not at all."""
        write_whole(path, self.model_dump_json())

    @classmethod
    def read(cls, path: Path) -> Rendezvous | None:
        """What stands there, or None where nothing does yet."""
        try:
            return cls.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            return None


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
