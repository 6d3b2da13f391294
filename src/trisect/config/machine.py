"""config/machines/NAME.yaml, key by key, and what follows from a machine's shape."""

import math
from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, field_validator, model_validator

from trisect.config.fields import Closed, Count, Rate, distinct
from trisect.errors import TrisectError
from trisect.host import usable_cores


class Slurm(Closed):
    """What sbatch and srun are told on this machine."""

    account: str | None = None
    """--account"""
    partition: str | None = None
    """--partition"""
    qos: str | None = None
    """--qos"""
    constraint: str | None = None
    """--constraint"""
    time_limit_minutes: PositiveInt = 30
    """--time, of each run. Where the model knows how long a run takes, less is asked for, and this is the most."""
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


class Links(Closed):
    """What the model takes the transfer time of an all_reduce from; docs/model.md."""

    pair_gb_per_s: Rate
    """Rate of a ring over two GPUs of a node. Each GPU has such a link to every other one, and a ring over g of them
    uses g - 1 of its links at once."""
    network_gb_per_s: dict[Literal["ring", "tree"], Rate]
    """Rate between nodes, by the algorithm that runs over it."""
    tree_nodes: list[Count] = []
    """Numbers of nodes at which NCCL takes a tree; a ring at all others."""
    source: str = ""
    """Where these rates were measured; a prediction says so."""
    step_us: float = Field(default=0, ge=0, allow_inf_nan=False)
    """What each step of an algorithm takes besides its bytes: alpha of the alpha-beta model."""

    def inside_gb_per_s(self, gpus: int) -> float:
        """Rate of a ring over `gpus` of one node: each uses its links to all others."""
        return self.pair_gb_per_s * max(gpus - 1, 1)

    @model_validator(mode="after")
    def _every_algorithm_has_a_rate(self) -> Self:
        for algorithm in ("ring", *(["tree"] if self.tree_nodes else [])):
            if algorithm not in self.network_gb_per_s:
                raise ValueError(f"network_gb_per_s has no rate for {algorithm!r}")
        return self


AUTO = "chosen"
"""Stands for the algorithm that the backend takes by itself."""


class ProbeSettings(Closed):
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

    _each_once = field_validator("algorithms")(distinct)

    @model_validator(mode="after")
    def _sizes_for_a_fit(self) -> Self:
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
    gpu_memory_gb: Rate | None = None
    """GiB of one GPU: a count at which a rank needs more is left out; null: nothing is checked."""
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
    probe: ProbeSettings = ProbeSettings()
    """What `snakemake probe` measures."""
    compute_jitter: float = Field(default=0, ge=0, lt=1)
    """Share by which a rank's compute is longer or shorter by chance, at most; for the model, as `links`."""

    @model_validator(mode="after")
    def _backend_fits(self) -> Self:
        if self.backend == "nccl" and self.device == "cpu":
            raise ValueError("backend nccl needs device cuda; use gloo on cpu")
        if self.probe.algorithms and self.backend != "nccl":
            raise ValueError(f"probe.algorithms are orders to NCCL; remove them here, where backend is {self.backend}")
        return self

    @property
    def unit(self) -> str:
        """What its counts are of, in the singular."""
        return "rank" if self.device == "cpu" else "GPU"

    @property
    def gpus(self) -> float:
        """GPUs there are; infinity where the file names no limit."""
        return math.inf if self.nodes is None else self.nodes * self.gpus_per_node

    @property
    def most_minutes(self) -> float:
        """How long a run may take; infinity where no scheduler ends it."""
        return self.slurm.time_limit_minutes if self.launcher == "slurm" else math.inf

    def ranks_per_host(self, gpus: int) -> int:
        """Ranks that share a host; the local launcher puts every rank on this machine, whatever the node size."""
        return gpus if self.launcher == "local" else min(gpus, self.gpus_per_node)

    @property
    def cores_per_host(self) -> int:
        """As the file says, else those that this process may use."""
        return len(usable_cores()) if self.cores_per_node is None else self.cores_per_node

    def shares_cores(self, gpus: int) -> bool:
        """Whether CPU ranks will outnumber the cores of their host."""
        return self.device == "cpu" and self.ranks_per_host(gpus) > self.cores_per_host

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
