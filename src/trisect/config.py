"""Configuration files to frozen objects; every mistake in them is one line that names file and key.

The models below are the only place that states a key, its default and its meaning;
workflow/schemas/ is written from them by `python -m trisect.config` for editors to complete and check against.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveInt,
    ValidationError,
    field_validator,
    model_validator,
)

from trisect.errors import TrisectError
from trisect.workload import load_balance_bound, tiles_per_image


def _whole(value: object) -> object:
    """`snakemake --config gpus=[1,2]` delivers digits as text; 1.5 and true stay what they are, and are refused."""
    return int(value) if isinstance(value, str) and value.removeprefix("-").isdigit() else value


Count = Annotated[int, Field(strict=True, ge=1), BeforeValidator(_whole)]
Natural = Annotated[int, Field(strict=True, ge=0), BeforeValidator(_whole)]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Iterations(_Closed):
    """How often each run repeats its iteration."""

    warmup: Natural = 2
    """Iterations before anything is kept; the profiler is already on in them."""
    measured: Count = 10
    """Profiled iterations that are kept. Intervals are over these."""
    unprofiled: Count = 4
    """Iterations timed with the profiler off, half before and half after: the price of looking."""


class Settings(_Closed):
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

    @field_validator("gpus", "experiments")
    @classmethod
    def _distinct(cls, values: list[object]) -> list[object]:
        for value in values:
            if values.count(value) > 1:
                raise ValueError(f"{value!r} stands there twice; name each once")
        return values


class Size(_Closed):
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


class Experiment(_Closed):
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
                    f"sizes.{name}.check_at: no size {size.check_at!r}{_nearest(size.check_at, self.sizes)}"
                )
        return self


class Slurm(_Closed):
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


class Machine(_Closed):
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

    @model_validator(mode="after")
    def _backend_fits(self) -> Machine:
        if self.backend == "nccl" and self.device == "cpu":
            raise ValueError("backend nccl needs device cuda; use gloo on cpu")
        return self

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


class Run(_Closed):
    """One run: an experiment at one GPU count, with everything that its measurement depends on."""

    name: str
    gpus: Count
    size: str
    experiment: Experiment
    iterations: Iterations
    seed: int
    device: str
    backend: str
    environment: dict[str, str]
    collective_timeout_s: int

    @property
    def problem_size(self) -> Size:
        """The size measured."""
        return self.experiment.sizes[self.size]

    def payload(self) -> str:
        """The run as JSON with sorted keys: the worker's input, and what its measurement is rerun for.

        Of the experiment's sizes only those that are used are in it, so that editing another reruns nothing.
        """
        used = {self.size, self.problem_size.check_at}
        content = self.model_dump(mode="json")
        content["experiment"]["sizes"] = {k: v for k, v in content["experiment"]["sizes"].items() if k in used}
        return json.dumps(content, sort_keys=True)

    def sha256(self) -> str:
        """Hash of the payload; all ranks must agree on it."""
        return hashlib.sha256(self.payload().encode()).hexdigest()

    def bounds(self) -> dict[str, float]:
        """Best load balance that whole pieces allow, per kind of piece."""
        return {
            "tiles": load_balance_bound(self.problem_size.tiles, self.gpus),
            "operators": load_balance_bound(self.experiment.operators, self.gpus),
        }


class Sweep(_Closed):
    """The whole configuration: the settings and the files they name."""

    settings: Settings
    machine: Machine
    experiments: dict[str, Experiment]
    """Every file of config/experiments/, not only those of the sweep."""

    def run(self, experiment: str, gpus: int) -> Run:
        """One run, in the sweep or not.

        Raises:
            TrisectError: no such experiment, or a count the machine or the problem cannot take.
        """
        if experiment not in self.experiments:
            raise TrisectError(
                f"experiments: no {experiment!r} in config/experiments/{_nearest(experiment, self.experiments)}"
            )
        if gpus < 1:
            raise TrisectError(f"gpus: {gpus} is no GPU count; use 1 or more")
        self.machine.check_count(gpus)
        chosen = self.experiments[experiment]
        least = chosen.sizes[self.settings.size].min_gpus
        if gpus < least:
            raise TrisectError(
                f"gpus: {experiment} at size {self.settings.size} does not fit on {gpus}; use {least} or more"
            )
        return Run(
            name=experiment,
            gpus=gpus,
            size=self.settings.size,
            experiment=chosen,
            iterations=self.settings.iterations,
            seed=self.settings.seed,
            device=self.machine.device,
            backend=self.machine.backend,
            environment=self.machine.environment,
            collective_timeout_s=self.machine.collective_timeout_s,
        )

    def weights(self, experiment: str) -> list[str]:
        """The experiment's file of denoiser weights, if it names one."""
        chosen = self.experiments.get(experiment)
        return [chosen.weights] if chosen is not None and chosen.weights is not None else []

    def counts(self, experiment: str) -> list[int]:
        """GPU counts of the sweep that this experiment fits on, ascending."""
        least = self.experiments[experiment].sizes[self.settings.size].min_gpus
        return sorted(n for n in self.settings.gpus if n >= least)

    def runs(self) -> list[Run]:
        """Every run of the sweep."""
        return [self.run(name, n) for name in self.settings.experiments for n in self.counts(name)]


Model = TypeVar("Model", bound=BaseModel)


def load(settings: Mapping[str, object], folder: Path) -> Sweep:
    """Read and check the whole configuration.

    Args:
        settings: content of config/config.yaml, with what the command line overrides.
        folder: the config folder, which holds experiments/ and machines/.

    Raises:
        TrisectError: the first thing that is wrong, naming file and key.
    """
    main = _parse(Settings, settings, "config/config.yaml or --config")
    experiments = {path.stem: _read(Experiment, path) for path in sorted((folder / "experiments").glob("*.yaml"))}
    machines = {path.stem: path for path in (folder / "machines").glob("*.yaml")}
    if main.machine not in machines:
        raise TrisectError(f"machine: no {main.machine!r} in config/machines/{_nearest(main.machine, machines)}")
    sweep = Sweep(settings=main, machine=_read(Machine, machines[main.machine]), experiments=experiments)
    for name in main.experiments:
        if name not in experiments:
            raise TrisectError(f"experiments: no {name!r} in config/experiments/{_nearest(name, experiments)}")
        chosen = experiments[name]
        if main.size not in chosen.sizes:
            raise TrisectError(f"size: {name} has no size {main.size!r}{_nearest(main.size, chosen.sizes)}")
        if chosen.weights is not None and not Path(chosen.weights).is_file():
            raise TrisectError(
                f"config/experiments/{name}.yaml: weights: no file {chosen.weights!r}; give a path or null"
            )
    for gpus in main.gpus:
        sweep.machine.check_count(gpus)
    return sweep


def _read(model: type[Model], path: Path) -> Model:
    where = f"config/{path.parent.name}/{path.name}"
    try:
        content = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise TrisectError(f"{where}: not readable as YAML: {' '.join(str(error).split())}") from None
    return _parse(model, content, where)


def _parse(model: type[Model], content: object, where: str) -> Model:
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise TrisectError(f"{where}: {_first_mistake(error, model)}") from None


def _first_mistake(error: ValidationError, model: type[BaseModel]) -> str:
    """The mistake most worth reading first: an unknown key explains a missing one."""
    mistakes = error.errors()
    first = next((m for m in mistakes if m["type"] == "extra_forbidden"), mistakes[0])
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"unknown key {key!r}{_nearest(str(first['loc'][-1]), _known_keys(model))}"
    message = first["msg"].removeprefix("Value error, ")
    given = first["input"]
    shown = f" (got {given})" if isinstance(given, str | int | float | bool) else ""
    return f"{key}: {message}{shown}" if key else message


def _known_keys(model: type[BaseModel]) -> set[str]:
    """Keys of a model and of the models below it."""
    schema = model.model_json_schema()
    return {key for part in [schema, *schema.get("$defs", {}).values()] for key in part.get("properties", {})}


def _nearest(word: str, known: Mapping[str, object] | Sequence[str] | set[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(sorted(known))}"


def schemas() -> dict[str, dict[str, object]]:
    """JSON schema of each kind of configuration file, by name."""
    return {model.__name__.lower(): model.model_json_schema() for model in (Settings, Experiment, Machine)}


if __name__ == "__main__":
    for name, schema in schemas().items():
        target = Path("workflow/schemas") / f"{name}.schema.json"
        target.write_text(json.dumps(schema, indent=2, sort_keys=True) + "\n")
