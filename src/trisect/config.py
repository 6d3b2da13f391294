"""Configuration files to frozen objects; every mistake in them is one line that names file and key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from trisect.errors import TrisectError
from trisect.layout import TAKEN
from trisect.settings import CHOSEN, Closed, Count, Experiment, Iterations, Machine, Settings, Size, nearest
from trisect.studied import Study
from trisect.workload import load_balance_bound

NCCL_ALGO = {"ring": "Ring", "tree": "ring;allreduce:tree,tree"}
"""How NCCL is told. Its tree does all_reduces alone, and versions that know a list for each collective end a job whose
other ones are left without any. They read: a tree for all_reduces, else a ring. Older ones split at commas alone and
skip words they do not know: to them it says tree, and they do the others in a ring anyway."""


class Ranks(Closed):
    """What every kind of launch has in common: its ranks, and what they join."""

    gpus: Count
    device: str
    backend: str
    environment: dict[str, str]
    collective_timeout_s: int

    def payload(self) -> str:
        """This as JSON with sorted keys: the worker's input, and what its measurement is rerun for."""
        return json.dumps(self.content(), sort_keys=True)

    def content(self) -> dict[str, Any]:
        """What the payload holds."""
        return self.model_dump(mode="json")

    def sha256(self) -> str:
        """Hash of the payload; all ranks must agree on it."""
        return hashlib.sha256(self.payload().encode()).hexdigest()


class Run(Ranks):
    """One run: an experiment at one GPU count, with everything that its measurement depends on."""

    name: str
    size: str
    experiment: Experiment
    iterations: Iterations
    seed: int

    @property
    def problem_size(self) -> Size:
        """The size measured."""
        return self.experiment.sizes[self.size]

    def content(self) -> dict[str, Any]:
        """Of the experiment's sizes only those that are used, so that editing another reruns nothing."""
        used = {self.size, self.problem_size.check_at}
        content = super().content()
        content["experiment"]["sizes"] = {k: v for k, v in content["experiment"]["sizes"].items() if k in used}
        return content

    def bounds(self) -> dict[str, float]:
        """Best load balance that whole pieces allow, per kind of piece."""
        return {
            "tiles": load_balance_bound(self.problem_size.tiles, self.gpus),
            "operators": load_balance_bound(self.experiment.operators, self.gpus),
        }


class ProbeRun(Ranks):
    """All_reduces of many sizes at one GPU count, with one algorithm."""

    algorithm: str
    """CHOSEN by the backend, or one that NCCL is told to take."""
    smallest_bytes: int
    largest_bytes: int
    repetitions: int
    seconds: float

    @property
    def payload_bytes(self) -> list[int]:
        """Sizes asked for, ascending: powers of two times the smallest."""
        doublings = (self.largest_bytes // self.smallest_bytes).bit_length()
        return [self.smallest_bytes << k for k in range(doublings)]


class Sweep(Closed):
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
                f"experiments: no {experiment!r} in config/experiments/{nearest(experiment, self.experiments)}"
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
            **self._ranks(gpus),
            name=experiment,
            size=self.settings.size,
            experiment=chosen,
            iterations=self.settings.iterations,
            seed=self.settings.seed,
        )

    def probe(self, gpus: int, algorithm: str) -> ProbeRun:
        """The probe of one count, in the sweep or not.

        Args:
            gpus: ranks.
            algorithm: CHOSEN, or one that NCCL is told to take, in the environment of every rank.

        Raises:
            TrisectError: a count the machine cannot take, or a backend that takes no such order.
        """
        self.machine.check_count(gpus)
        ranks = self._ranks(gpus)
        if algorithm != CHOSEN:
            if self.machine.backend != "nccl":
                raise TrisectError(
                    f"probe: NCCL alone can be told to take a {algorithm}, the machine's backend is"
                    f" {self.machine.backend}; probe {CHOSEN} instead"
                )
            ranks["environment"] = self.machine.environment | {"NCCL_ALGO": NCCL_ALGO[algorithm]}
        return ProbeRun(**ranks, algorithm=algorithm, **self.machine.probe.model_dump(exclude={"algorithms"}))

    def probes(self) -> list[ProbeRun]:
        """Every probe of the sweep's counts: with the algorithm that is chosen, and with those the machine asks for."""
        algorithms = (CHOSEN, *self.machine.probe.algorithms)
        return [self.probe(n, algorithm) for n in sorted(self.settings.gpus) for algorithm in algorithms]

    def _ranks(self, gpus: int) -> dict[str, Any]:
        machine = self.machine
        return {
            "gpus": gpus,
            "device": machine.device,
            "backend": machine.backend,
            "environment": machine.environment,
            "collective_timeout_s": machine.collective_timeout_s,
        }

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
    experiments = load_experiments(folder)
    sweep = Sweep(settings=main, machine=load_machine(main.machine, folder), experiments=experiments)
    for name in main.experiments:
        if name not in experiments:
            raise TrisectError(f"experiments: no {name!r} in config/experiments/{nearest(name, experiments)}")
        chosen = experiments[name]
        if main.size not in chosen.sizes:
            raise TrisectError(f"size: {name} has no size {main.size!r}{nearest(main.size, chosen.sizes)}")
        if chosen.weights is not None and not Path(chosen.weights).is_file():
            raise TrisectError(
                f"config/experiments/{name}.yaml: weights: no file {chosen.weights!r}; give a path or null"
            )
    for gpus in main.gpus:
        sweep.machine.check_count(gpus)
    for gpus in main.predict.fit or ():
        if gpus not in main.gpus:
            raise TrisectError(
                f"predict.fit: {gpus} is not among `gpus`, {', '.join(map(str, main.gpus))}, and so is not measured;"
                " fit counts of these, or add it to them"
            )
    return sweep


def load_experiments(folder: Path) -> dict[str, Experiment]:
    """Every file of config/experiments/, by name.

    Raises:
        TrisectError: a file is wrong, or has a name that the results need for something else.
    """
    names = sorted(path.stem for path in (folder / "experiments").glob("*.yaml"))
    for name in TAKEN:
        if name in names:
            raise TrisectError(f"config/experiments/{name}.yaml: results/{name}/ holds something else; rename the file")
    return {name: _read(Experiment, folder, f"experiments/{name}.yaml") for name in names}


def load_machine(name: str, folder: Path) -> Machine:
    """One file of config/machines/.

    Raises:
        TrisectError: there is none of that name, or it is wrong.
    """
    machines = {path.stem for path in (folder / "machines").glob("*.yaml")}
    if name not in machines:
        raise TrisectError(f"machine: no {name!r} in config/machines/{nearest(name, machines)}")
    return _read(Machine, folder, f"machines/{name}.yaml")


def load_study(folder: Path) -> Study:
    """config/study.yaml.

    Raises:
        TrisectError: it is missing or wrong, or names an experiment that has no file.
    """
    study = _read(Study, folder, "study.yaml")
    experiments = load_experiments(folder)
    for name in study.experiments:
        if name not in experiments:
            raise TrisectError(f"config/study.yaml: no {name!r} in config/experiments/{nearest(name, experiments)}")
    return study


def _read(model: type[Model], folder: Path, name: str) -> Model:
    """One file below the config folder."""
    where = f"config/{name}"
    try:
        content = yaml.safe_load((folder / name).read_text())
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
        return f"unknown key {key!r}{nearest(str(first['loc'][-1]), _known_keys(model))}"
    message = first["msg"].removeprefix("Value error, ")
    given = first["input"]
    shown = f" (got {given})" if isinstance(given, str | int | float | bool) else ""
    return f"{key}: {message}{shown}" if key else message


def _known_keys(model: type[BaseModel]) -> set[str]:
    """Keys of a model and of the models below it."""
    schema = model.model_json_schema()
    return {key for part in [schema, *schema.get("$defs", {}).values()] for key in part.get("properties", {})}
