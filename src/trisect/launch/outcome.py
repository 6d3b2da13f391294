"""How one rank ended: written by its supervisor, read by the launcher."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from trisect.host import write_whole

Status = Literal["running", "ok", "raised", "exited", "killed", "stopped", "refused"]
"""exited: left by an exit code, without returning; stopped: ended by the launcher or SLURM, so not to blame;
refused: never started, because the place it was given is wrong."""


class Outcome(BaseModel):
    """One rank of one attempt."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rank: int
    world_size: int
    local_rank: int
    node: int
    """Index of the node within the job."""
    host: str
    device: str | None
    """The entry of CUDA_VISIBLE_DEVICES that belongs to this rank; None where nothing is said about devices."""
    payload_sha256: str
    supervisor_pid: int
    pid: int | None
    """Of the process that runs the target."""
    status: Status
    code: int | None = None
    """Exit code; for `killed` the signal's number."""
    error: str | None = None
    started_s: float
    """Seconds since the epoch, on this host's clock; likewise ended_s."""
    ended_s: float | None = None

    def write(self, path: Path) -> None:
        """Write whole or not at all."""
        write_whole(path, self.model_dump_json() + "\n")

    @classmethod
    def read(cls, path: Path) -> Outcome | None:
        """What stands there, or None where nothing readable does (yet)."""
        try:
            return cls.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            return None
