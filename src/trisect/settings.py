"""The configuration files, key by key: the only place that states a key, its default and its meaning.

config/study.yaml is in studied.py. workflow/schemas/ is written from these models by `make schemas`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PositiveInt, field_validator, model_validator

from trisect.errors import TrisectError
from trisect.workload import tiles_per_image


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of a complaint: the known word that was probably meant, or all there are."""
    words = sorted(known)
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(words)}"


def _whole(value: object) -> object:
    """`snakemake --config gpus=[1,2]` delivers digits as text; 1.5 and true stay what they are, and are refused."""
    return int(value) if isinstance(value, str) and value.removeprefix("-").isdigit() else value


Count = Annotated[int, Field(strict=True, ge=1), BeforeValidator(_whole)]
Natural = Annotated[int, Field(strict=True, ge=0), BeforeValidator(_whole)]


def _distinct(values: list[object]) -> list[object]:
    for value in values:
        if values.count(value) > 1:
            raise ValueError(f"{value!r} stands there twice; name each once")
    return values


class Closed(BaseModel):
    """A model that refuses keys it does not know and values that change."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Iterations(Closed):
    """How often each run repeats its iteration."""

    warmup: Natural = 2
    """Iterations before anything is kept; the profiler is already on in them."""
    measured: Count = 10
    """Profiled iterations that are kept. Intervals are over these."""
    unprofiled: Count = 4
    """Iterations timed with the profiler off, half before and half after: the price of looking."""


class Predict(Closed):
    """What `snakemake predict` starts from."""

    fit: list[Count] | None = None
    """Counts of `gpus` that the model is fitted to; all others are held out. null: the two smallest whose ranks have
    cores of their own."""


class Settings(Closed):
    """config/config.yaml: what the sweep covers."""

    machine: str = "laptop"
    """A file of config/machines/, without .yaml."""
    size: str = "laptop"
    """A key of `sizes` in each experiment's file."""
    experiments: list[str] = Field(min_length=1)
    """Files of config/experiments/, without .yaml."""
    gpus: list[Count] = Field(min_length=1)
    """World sizes to run: one rank per GPU, or per CPU process where the machine's device is cpu."""
    iterations: Iterations = Iterations()
    """How often each run repeats its iteration."""
    seed: int = 0
    """Of the ground truth, the noise and random denoiser weights; equal on all ranks."""
    results: str = "results"
    """Folder that everything is written to."""
    against: str | None = None
    """Results folder of an earlier sweep to compare this one with; null: none."""
    predict: Predict = Predict()
    """What `snakemake predict` starts from."""

    _each_once = field_validator("gpus", "experiments")(_distinct)


class Size(Closed):
    """One size of an experiment's problem."""

    image: list[Count] = Field(min_length=3, max_length=4)
    """Channels, then pixels along each axis (2 or 3 of them)."""
    patch: Count
    """Pixels of a tile along each axis, without the overlap."""
    overlap: Natural
    """Pixels by which a tile reaches into its neighbours on each side."""
    tiles_per_batch: Count | None = None
    """Tiles the denoiser takes at once; null: all that the rank holds."""
    denoiser_channels: list[Count] = Field(min_length=4, max_length=4)
    """DRUNet's channels at its four scales."""
    denoiser_blocks: Count
    """DRUNet's residual blocks per scale."""
    min_gpus: Count = 1
    """Fewest GPUs that the problem fits on; smaller counts of the sweep are left out for it."""
    check_at: str | None = None
    """Size at which the result is compared with one process; null: this size."""

    @property
    def tiles(self) -> int:
        """Tiles of the image."""
        return tiles_per_image(self.image[1:], self.patch)

    @model_validator(mode="after")
    def _tile_fits(self) -> Size:
        smallest = min(self.image[1:])
        if self.patch >= smallest:
            raise ValueError(f"patch {self.patch} must be smaller than the image, whose smallest axis has {smallest}")
        if self.overlap >= smallest:
            raise ValueError(f"overlap {self.overlap} must be smaller than the image's smallest axis, {smallest}")
        return self


class Experiment(Closed):
    """config/experiments/NAME.yaml: one result set."""

    problem: str
    """A name registered in trisect.bench.problems."""
    mode: Literal["inference", "training"]
    """inference: sections gradient and denoiser; training: sections forward and backward."""
    operators: Count
    """Acquisition operators; each is held whole by one rank."""
    unrolled_iterations: Count = 1
    """Solver iterations in one training step; training only."""
    noise_sigma: float = Field(default=0.01, ge=0)
    """Standard deviation of the noise on the measurements; the image ranges from 0 to 1."""
    denoiser_sigma: float = Field(default=0.05, gt=0)
    """Noise level the denoiser is told."""
    weights: str | None = None
    """File of denoiser weights (a state_dict of a DRUNet of this size); null: random, which take the same time."""
    tolerance: float = Field(default=1e-4, gt=0)
    """Largest relative difference from the single-process result."""
    sizes: dict[str, Size]
    """The published size, and smaller ones of the same thing."""

    @property
    def sections(self) -> list[str]:
        """Sections of one iteration, in order."""
        return ["gradient", "denoiser"] if self.mode == "inference" else ["forward", "backward"]

    @model_validator(mode="after")
    def _consistent(self) -> Experiment:
        if self.mode == "inference" and self.unrolled_iterations != 1:
            raise ValueError("unrolled_iterations is for mode training; remove it here")
        for name, size in self.sizes.items():
            if size.check_at is not None and size.check_at not in self.sizes:
                raise ValueError(
                    f"sizes.{name}.check_at: no size {size.check_at!r}{nearest(size.check_at, self.sizes)}"
                )
        return self


class Slurm(Closed):
    """How this machine's SLURM wants to be asked."""

    account: str | None = None
    """--account"""
    partition: str | None = None
    """--partition"""
    qos: str | None = None
    """--qos"""
    constraint: str | None = None
    """--constraint"""
    time_limit_minutes: PositiveInt = 30
    """--time"""
    memory_gb_per_node: PositiveInt | None = None
    """--mem"""
    cpus_per_gpu: PositiveInt = 1
    """--cpus-per-task: one task is one GPU."""
    modules: list[str] = []
    """Modules to load before the ranks start."""
    srun_args: list[str] = []
    """More arguments for srun."""
    extra: dict[str, str | int | bool] = {}
    """More sbatch options, by their long name with underscores."""


Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Links(Closed):
    """What the model takes the transfer time of an all_reduce from; docs/model.md."""

    pair_gb_per_s: Rate
    """Rate of a ring over two GPUs of a node. Each GPU has such a link to every other one, and a ring over g of them
    uses g - 1 of its links at once."""
    network_gb_per_s: dict[Literal["ring", "tree"], Rate]
    """Rate between nodes, by the algorithm that runs over it."""
    tree_nodes: list[Count] = []
    """Numbers of nodes at which NCCL takes a tree; a ring at all others."""
    step_us: float = Field(default=0, ge=0, allow_inf_nan=False)
    """What each step of an algorithm takes besides its bytes: alpha of the alpha-beta model."""

    @model_validator(mode="after")
    def _every_algorithm_has_a_rate(self) -> Links:
        for algorithm in ("ring", *(["tree"] if self.tree_nodes else [])):
            if algorithm not in self.network_gb_per_s:
                raise ValueError(f"network_gb_per_s has no rate for {algorithm!r}")
        return self


CHOSEN = "chosen"
"""Where an algorithm is named: what the backend takes by itself."""


class Probe(Closed):
    """What `snakemake probe` measures; docs/probe.md."""

    algorithms: list[Literal["ring", "tree"]] = []
    """Algorithms to force on NCCL besides what it chooses, each in a job of its own."""
    smallest_bytes: Annotated[Count, Field(multiple_of=4)] = 1 << 10
    """Smallest payload; each next one is twice as large."""
    largest_bytes: Count = 1 << 30
    """Largest payload, where memory allows it."""
    repetitions: Annotated[Count, Field(ge=5)] = 200
    """Most all_reduces of a size and cadence; fewer where they take long, never under 5."""
    seconds: float = Field(default=30, gt=0)
    """Time that one job may measure for; sizes that would take longer are left out."""

    _each_once = field_validator("algorithms")(_distinct)

    @model_validator(mode="after")
    def _sizes_for_a_fit(self) -> Probe:
        if self.largest_bytes < 4 * self.smallest_bytes:
            raise ValueError(
                f"{self.smallest_bytes} to {self.largest_bytes} bytes are fewer than 3 sizes, too few for latency and"
                f" rate; raise largest_bytes to {4 * self.smallest_bytes} or more"
            )
        return self


class Machine(Closed):
    """config/machines/NAME.yaml: where runs happen."""

    launcher: Literal["local", "slurm"]
    """local: processes on this machine; slurm: jobs."""
    device: Literal["cpu", "cuda"]
    """What a rank computes on."""
    backend: Literal["gloo", "nccl"]
    """torch.distributed's backend; asserted in every run."""
    gpus_per_node: Count
    """Ranks a node takes. Counts above it must be multiples of it."""
    nodes: Count | None = None
    """Nodes there are; null: no limit."""
    cores_per_node: Count | None = None
    """For the record and for warnings before launch; null: those of this machine."""
    collective_timeout_s: Count = 300
    """A collective that takes longer ends the run."""
    environment: dict[str, str] = {}
    """Variables set in every rank, NCCL_SOCKET_IFNAME for example."""
    slurm: Slurm = Slurm()
    """Only for launcher slurm."""
    links: Links | None = None
    """For `trisect predict` and `make study`; no run reads it."""
    probe: Probe = Probe()
    """What `snakemake probe` measures."""
    compute_jitter: float = Field(default=0, ge=0, lt=1)
    """Share by which a rank's compute is longer or shorter by chance, at most; for the model, as `links`."""

    @model_validator(mode="after")
    def _backend_fits(self) -> Machine:
        if self.backend == "nccl" and self.device == "cpu":
            raise ValueError("backend nccl needs device cuda; use gloo on cpu")
        if self.probe.algorithms and self.backend != "nccl":
            raise ValueError(f"probe.algorithms are orders to NCCL; remove them here, where backend is {self.backend}")
        return self

    @property
    def unit(self) -> str:
        """What its counts are of, in the singular."""
        return "rank" if self.device == "cpu" else "GPU"

    def check_count(self, gpus: int) -> None:
        """Refuse a count that this machine's nodes cannot take.

        Raises:
            TrisectError: above the node size and no multiple of it, or more nodes than there are.
        """
        per_node = self.gpus_per_node
        if gpus > per_node and gpus % per_node:
            down = gpus - gpus % per_node
            raise TrisectError(
                f"gpus: {gpus} is above the node size {per_node} and no multiple of it; use {down} or {down + per_node}"
            )
        nodes = -(-gpus // per_node)
        if self.nodes is not None and nodes > self.nodes:
            raise TrisectError(
                f"gpus: {gpus} needs {nodes} nodes of {per_node}, the machine has {self.nodes}; "
                f"use at most {self.nodes * per_node}"
            )
