"""Configuration files to checked objects; every mistake in them is one line that names file and key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from trisect.config.experiment import Experiment
from trisect.config.fields import nearest
from trisect.config.machine import Machine
from trisect.config.plan import Sweep
from trisect.config.settings import Settings
from trisect.config.study import Study
from trisect.errors import TrisectError
from trisect.results.layout import TAKEN

_Model = TypeVar("_Model", bound=BaseModel)


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


def _read(model: type[_Model], folder: Path, name: str) -> _Model:
    """One file below the config folder."""
    where = f"config/{name}"
    try:
        content = yaml.safe_load((folder / name).read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise TrisectError(f"{where}: not readable as YAML: {' '.join(str(error).split())}") from None
    return _parse(model, content, where)


def _parse(model: type[_Model], content: object, where: str) -> _Model:
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
