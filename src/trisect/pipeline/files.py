"""What several rules read and write: several files at once, NCCL's logs, what a probe left."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from trisect.errors import TrisectError
from trisect.network.nccl_log import algorithm_for, read_tuning
from trisect.results.layout import Layout, RunLayout
from trisect.results.tables import FITS, PAIRED_COLLECTIVES, read_table


def write_all(writers: Mapping[Path, Callable[[Path], object]]) -> None:
    """Write every file under a temporary name and rename only when all are complete.

    Raises:
        TrisectError: one of them cannot be written; then none has changed.
    """
    partial = {path: path.with_name(path.name + ".partial") for path in writers}
    try:
        for path, write in writers.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write(partial[path])
        for path, temporary in partial.items():
            temporary.replace(path)
    except OSError as error:
        raise TrisectError(f"{path.parent}: cannot write there ({error.strerror}); choose another folder") from None
    finally:
        for temporary in filter(Path.exists, partial.values()):
            temporary.unlink()


def tuning_of(run: RunLayout, gpus: int) -> tuple[pd.DataFrame | None, int]:
    """nccl_log.TUNING of all the logs of a run or probe together, None without any; and how many lines were cut.

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


def fits_of(layout: Layout) -> pd.DataFrame | None:
    """What the probe found, or None where it did not run.

    Raises:
        TrisectError: its table is damaged.
    """
    return read_table(layout.fits, FITS) if layout.fits.exists() else None


def algorithms_of(run: RunLayout, gpus: int) -> tuple[dict[tuple[str, int], str], int]:
    """By section and count, what NCCL took for the largest all_reduce, none without logs; and the lines that were cut.

    Raises:
        TrisectError: the logs are of another run.
    """
    tuning, cut = tuning_of(run, gpus)
    if tuning is None or not run.collectives.exists():
        return {}, 0
    collectives = read_table(run.collectives, PAIRED_COLLECTIVES)
    largest = collectives[collectives["op"] == "all_reduce"].groupby("section")["bytes"].max()
    found = {(str(name), gpus): algorithm_for(tuning, "all_reduce", int(size)) for name, size in largest.items()}
    return found, cut
