"""What one run or probe ran on, and how far to trust it: run.json in its folder."""

import math
from pathlib import Path
from typing import ClassVar, Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from trisect.errors import TrisectError
from trisect.host import write_whole
from trisect.results.notes import Note, note


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, ser_json_inf_nan="constants")


class _Written(_Closed):
    """A record that is a file."""

    WHAT: ClassVar[str] = "record"
    AGAIN: ClassVar[str] = "measure this count again"

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
            raise TrisectError(f"{path}: no {cls.WHAT} here; {cls.AGAIN}") from None
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise TrisectError(f"{path}: not a {cls.WHAT}: {where}: {first['msg']}; {cls.AGAIN}") from None


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

    @property
    def model(self) -> str:
        """Of the device, the model alone: "Tesla V100-SXM2-32GB", or "cpu"."""
        return self.device.split(" ", 1)[-1]


class RankRecord(RankPlace):
    """And what it held."""

    tiles: int
    operators: int
    peak_memory_bytes: dict[str, int] = Field(description="per section; allocated on CUDA, resident on CPU")
    peak_reserved_bytes: dict[str, int] = Field(
        default={}, description="per section, what torch's allocator held of the device; empty on CPU"
    )
    least_free_bytes: int | None = Field(
        default=None, description="smallest free memory at the end of a section: of the device, of the host on CPU"
    )


class Correctness(_Closed):
    """The distributed result against the single-process one."""

    relative_difference: dict[str, float] = Field(description="per quantity: norm of difference over norm")
    tolerance: float
    size: str = Field(description="the size it was compared at: the measured one, or a smaller one that fits")
    iterations: int


class Quality(_Closed):
    """PSNR of the reconstruction against the ground truth, at the start and after every iteration."""

    size: str = Field(description="the size it was computed at")
    psnr_db: list[float] = Field(description="by all ranks together")
    single_psnr_db: list[float] = Field(description="by one process, over the same tiles")
    untiled_psnr_db: list[float] | None = Field(description="by one process, the whole image denoised at once")

    @property
    def largest_difference_db(self) -> float:
        """Between all ranks and one process, over the same tiles; NaN where either is none."""
        pairs = zip(self.psnr_db, self.single_psnr_db, strict=True)
        apart = [0.0 if found == single else abs(found - single) for found, single in pairs]
        return math.nan if any(map(math.isnan, apart)) else max(apart)

    @property
    def tiling_db(self) -> float:
        """What tiling adds to the last PSNR, over the whole image denoised at once; NaN where that is unknown."""
        return self.single_psnr_db[-1] - self.untiled_psnr_db[-1] if self.untiled_psnr_db else math.nan


class Profiling(_Closed):
    """What the profiler costs."""

    profiled_s: list[float] = Field(description="iteration times with the profiler on, rank 0")
    unprofiled_s: list[float] = Field(description="iteration times with it off, same process, rank 0")
    overhead: float = Field(
        description="median of the first over median of the second",
        validation_alias=AliasChoices("overhead", "price"),  # records of version 0.1
    )


class Provenance(_Written):
    """What a launch of any kind ran on."""

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
    tile_work: float | None = Field(default=None, description="area of all tiles with their overlap over the image's")
    load_balance_bound: dict[str, float] = Field(description="per kind of work: tiles, operators")
    iterations: dict[str, int] = Field(description="warmup, measured, unprofiled")
    measurements_sha256: str = Field(description="of truth and measurements; equal on all ranks, or the run failed")
    correctness: Correctness
    profiling: Profiling
    quality: Quality | None = Field(default=None, description="null where the weights are no denoiser's")
    precision: str = Field(default="fp32", description="fp32, tf32 or amp")
    arithmetic: dict[str, bool] = Field(
        default={}, description="TF32, cudnn.benchmark, deterministic, channels_last, compile, as torch was set"
    )
    ranks: list[RankRecord]

    @model_validator(mode="before")
    @classmethod
    def _of_version_0_2(cls, content: object) -> object:
        """Records of version 0.2 had the PSNR of random weights, which says nothing."""
        return {k: v for k, v in content.items() if k != "psnr_db"} if isinstance(content, dict) else content

    def peak_bytes(self, *sections: str) -> float:
        """Peak memory in `sections`, of the rank that used most; NaN where no rank recorded it."""
        peaks = (rank.peak_memory_bytes for rank in self.ranks)
        return max((peak[name] for peak in peaks for name in sections if name in peak), default=math.nan)


class ProbeRecord(Provenance):
    """One probe: all_reduces of many sizes at one GPU count."""

    WHAT: ClassVar[str] = "probe record"

    algorithm: str = Field(description="'chosen' by the backend, or the one that NCCL was told to take")
    payload_bytes: list[int] = Field(description="sizes measured")
    memory_bytes: int = Field(description="largest payload that the memory of every rank allows")
    left_out: Note | None = Field(description="which sizes were left out, and why; null where none was")
    warmup: int = Field(description="all_reduces before the isolated ones of each size, not counted")
    chain: int = Field(description="all_reduces in a row of the streamed cadence; the first is not counted")
    checked: int = Field(description="all_reduces whose results were compared with the true sum on every rank")
    ranks: list[RankPlace]

    @field_validator("left_out", mode="before")
    @classmethod
    def _of_version_0_1(cls, value: object) -> object:
        """Records of version 0.1 said this in words."""
        return note("probe_as_recorded", text=value) if isinstance(value, str) and value else value or None


class Change(_Closed):
    """One thing changed in a prediction, and up to about which count it then holds; 0 is none."""

    change: str = Field(description="a kind `change_...` of report/text/notes.yaml")
    pays: float = Field(description="largest count with the parallel efficiency that pays")
    half: float = Field(description="largest count with a parallel efficiency of half")
    crossing: float = Field(description="largest count where transfer stays below the slowest rank's compute")
    efficiency: float = Field(description="parallel efficiency at the record's `shown_at`")


class PredictionRecord(_Written):
    """prediction.json: what a prediction answers, beside its table."""

    WHAT: ClassVar[str] = "prediction"
    AGAIN: ClassVar[str] = "make it again: snakemake --forcerun prediction -- report"

    experiment: str
    size: str
    machine: str
    unit: str = Field(description="what is counted, in the singular: rank or GPU")
    fitted: list[int] = Field(description="measured counts that the model was fitted to; none: from constants alone")
    algorithms: dict[int, str] = Field(description="by count above 1, the algorithm that is taken to run")
    shown_at: int
    answers: list[Note]
    what_if: list[Change]
    errors: list[Note] = Field(description="relative errors at the measured counts")
    notes: list[Note]
