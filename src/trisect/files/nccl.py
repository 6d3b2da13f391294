"""What a run's or a probe's NCCL logs say, and whether they are of that run."""

from __future__ import annotations

import pandas as pd

from trisect.comm.nccl_log import read_tuning
from trisect.errors import TrisectError
from trisect.layout import RunLayout


def tuning_of(run: RunLayout, gpus: int) -> tuple[pd.DataFrame | None, int]:
    """nccl_log.TUNING of all its logs together, None where there is none; and how many lines were cut.

    Raises:
        TrisectError: the logs are of another number of ranks, and so of another run.
    """
    logs = sorted(run.nccl.glob("*.log"))
    if not logs:
        return None, 0
    tuning, cut = read_tuning("\n".join(path.read_text(errors="replace") for path in logs))
    world = int(tuning["nranks"].max()) if len(tuning) else -1
    if world not in (-1, gpus):
        raise TrisectError(
            f"{run.nccl}: these logs are of {world} ranks, the run has {gpus}; they are from another run"
        )
    return tuning, cut
