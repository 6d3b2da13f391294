"""How one rank ended: written by its supervisor, read by the launcher."""

from typing import Literal

from trisect.launch.job import JsonRecord

Status = Literal["running", "ok", "raised", "exited", "killed", "stopped", "refused"]
"""exited: left by an exit code, without returning; stopped: ended by the launcher or SLURM, so not to blame;
refused: never started, because it was placed wrongly."""


class Outcome(JsonRecord):
    """One rank of one attempt."""

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
