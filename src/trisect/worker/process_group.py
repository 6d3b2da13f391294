"""What every rank does whatever it measures: join the others, exchange values, report its progress."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

import torch.distributed as dist
from deepinv.distributed import DistributedContext

from trisect.config.plan import Ranks
from trisect.errors import TrisectError
from trisect.host import write_whole
from trisect.worker import device

_T = TypeVar("_T")


@contextmanager
def join(launched: Ranks, seed: int | None = None) -> Iterator[DistributedContext]:
    """The process group and deepinv's context on it, on the named backend, left again at the end.

    `seed` is of all random numbers, on every rank; None: not set.

    Raises:
        TrisectError: another backend came up, the world has another size, or two ranks share a GPU.
    """
    timeout = timedelta(seconds=launched.collective_timeout_s)
    dist.init_process_group(launched.backend, timeout=timeout)
    try:
        mode = "gpu" if launched.device == "cuda" else "cpu"
        with DistributedContext(backend=launched.backend, seed=seed, seed_offset=False, device_mode=mode) as ctx:
            if dist.get_backend() != launched.backend:
                raise TrisectError(f"backend: {launched.backend} was asked for, {dist.get_backend()} came up")
            if ctx.world_size != launched.gpus:
                raise TrisectError(f"gpus: {launched.gpus} ranks were asked for, {ctx.world_size} joined")
            _require_distinct_devices(ctx)
            yield ctx
    finally:
        dist.destroy_process_group()


def _require_distinct_devices(ctx: DistributedContext) -> None:
    uuids = gather(device.describe(ctx.device)[1], ctx.world_size)
    for rank, uuid in enumerate(uuids):
        first = uuids.index(uuid)
        if uuid is not None and first != rank:
            raise TrisectError(f"device: ranks {first} and {rank} share the GPU {uuid}; give each task its own")


def gather(mine: _T, world_size: int) -> list[_T]:
    """Every rank's value, on every rank."""
    values = [mine] * world_size
    dist.all_gather_object(values, mine)
    return values


def progress_of(rank: int, path: Path) -> Callable[[str], None]:
    """Writes "k/m", or any words, for the launcher to read, whole or not at all; only rank 0 does."""
    return partial(write_whole, path) if rank == 0 else lambda state: None
