"""What one run or probe ran on, and how far to trust it: run.json in its folder."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trisect.errors import TrisectError
from trisect.host import write_whole


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RankPlace(_Closed):
    """Where one rank ran."""

    rank: int
    local_rank: int
    host: str
    pid: int
    device: str = Field(description="'cpu', or 'cuda:0 Tesla V100-SXM2-32GB'")
    device_uuid: str | None = Field(description="distinct for every rank on CUDA; null on CPU")
    cores: int = Field(description="cores this process may run on")
    threads: int = Field(description="threads of torch's intra-op pool")


class RankRecord(RankPlace):
    """And what it held."""

    tiles: int
    operators: int
    peak_memory_bytes: dict[str, int] = Field(description="per section; device memory on CUDA, resident on CPU")


class Correctness(_Closed):
    """The distributed result against the single-process one."""

    relative_difference: dict[str, float] = Field(description="per quantity: norm of difference over norm")
    tolerance: float
    size: str = Field(description="the size it was compared at: the measured one, or a smaller one that fits")
    iterations: int


class Profiling(_Closed):
    """The price of looking."""

    profiled_s: list[float] = Field(description="iteration times with the profiler on, rank 0")
    unprofiled_s: list[float] = Field(description="iteration times with it off, same process, rank 0")
    price: float = Field(description="median of the first over median of the second")


class Provenance(_Closed):
    """What a launch of any kind ran on."""

    WHAT: ClassVar[str] = "record"

    gpus: int
    config: dict[str, object] = Field(description="the resolved parameters; params of its rule")
    config_sha256: str
    launcher: str
    job_id: str
    backend: str
    device: str
    placement_as_intended: bool
    versions: dict[str, str] = Field(description="trisect, torch, deepinv, python, cuda, nccl, driver, ...")
    git_revision: str = Field(description="of the working folder; '-dirty' where it has changes; '' outside git")
    environment: dict[str, str] = Field(description="NCCL_*, GLOO_* and thread variables as rank 0 saw them")
    hosts: dict[str, int] = Field(description="host name to its number of cores")
    oversubscribed: bool = Field(description="some host ran more CPU ranks than it has cores")

    def write(self, path: Path) -> None:
        """Write as JSON, whole or not at all."""
        write_whole(path, self.model_dump_json(indent=2) + "\n")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a record.

        Raises:
            TrisectError: the file is missing or not such a record.
        """
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            raise TrisectError(f"{path}: no {cls.WHAT} here; measure this count first") from None
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise TrisectError(f"{path}: not a {cls.WHAT}: {where}: {first['msg']}; rerun this count") from None


class RunRecord(Provenance):
    """One run: an experiment at one GPU count."""

    WHAT: ClassVar[str] = "run record"

    experiment: str
    size: str
    mode: str = Field(description="inference or training")
    sections: list[str]
    tiles: int
    operators: int
    patch_requested: list[int]
    patch_effective: list[int]
    load_balance_bound: dict[str, float] = Field(description="per kind of work: tiles, operators")
    iterations: dict[str, int] = Field(description="warmup, measured, unprofiled")
    measurements_sha256: str = Field(description="equal on all ranks, or the run failed")
    correctness: Correctness
    profiling: Profiling
    psnr_db: float
    ranks: list[RankRecord]


class ProbeRecord(Provenance):
    """One probe: all_reduces of many sizes at one GPU count."""

    WHAT: ClassVar[str] = "probe record"

    algorithm: str = Field(description="'chosen' by the backend, or the one that NCCL was told to take")
    payload_bytes: list[int] = Field(description="sizes measured")
    memory_bytes: int = Field(description="largest payload that the memory of every rank allows")
    left_out: str = Field(description="which sizes were left out, and why; '' where none was")
    warmup: int = Field(description="all_reduces before the separated ones of each size, not counted")
    chain: int = Field(description="all_reduces in a row of the back-to-back cadence; the first is not counted")
    checked: int = Field(description="all_reduces whose results were compared with the true sum on every rank")
    ranks: list[RankPlace]
