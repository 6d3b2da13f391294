"""Configuration files to checked objects; every mistake in them is one line that names file and key."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from trisect.config.experiment import Experiment
from trisect.config.fields import nearest
from trisect.config.machine import Machine
from trisect.config.plan import Sweep
from trisect.config.settings import Settings
from trisect.config.study_settings import Study
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
        for file in chosen.inputs(main.size):
            if not Path(file).is_file():
                raise TrisectError(f"config/experiments/{name}.yaml: no file {file!r}; give a path, or null")
    if main.precision == "tf32" and sweep.machine.device == "cpu":
        raise TrisectError("precision: tf32 is arithmetic of NVIDIA GPUs; use fp32 or amp where device is cpu")
    for gpus in main.gpus:
        sweep.machine.check_count(gpus)
    for name in main.experiments:
        _check_checkpointing(sweep, name)
        if not sweep.counts(name):
            raise TrisectError(
                f"gpus: {name} at size {main.size} fits on {sweep.least_gpus(name)} GPUs of"
                f" {sweep.machine.gpu_memory_gb:g} GiB or more, and no count reaches that; add one, or lower"
                " batch"
            )
    for gpus in main.predict.fit or ():
        if gpus not in main.gpus:
            raise TrisectError(
                f"predict.fit: {gpus} is not among `gpus`, {', '.join(map(str, main.gpus))}, and so is not measured;"
                " fit counts of these, or add it to them"
            )
    return sweep


def _check_checkpointing(sweep: Sweep, name: str) -> None:
    """Refuse checkpoint: auto where some ranks or counts would compute activations again, and others keep them."""
    if not sweep.experiments[name].training:
        return
    modes = {(n, rank): again for n in sweep.counts(name) for rank, again in sweep.run(name, n).checkpointing().items()}
    first = next(iter(modes.items()), None)
    for (n, rank), again in modes.items():
        if first is not None and again != first[1]:
            does = ["keeps", "checkpoints"]
            raise TrisectError(
                f"config/experiments/{name}.yaml: sizes.{sweep.settings.size}.checkpoint: with auto, rank {rank} of {n}"
                f" {does[again]} its activations and rank {first[0][1]} of {first[0][0]} {does[first[1]]} them: they"
                " would do different work; use always or never"
            )


def load_experiments(folder: Path) -> dict[str, Experiment]:
    """Every file of config/experiments/, by name.

    Raises:
        TrisectError: a file is wrong, or has a name that the results need for something else.
    """
    _require(folder)
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
    _require(folder)
    machines = {path.stem for path in (folder / "machines").glob("*.yaml")}
    if name not in machines:
        raise TrisectError(f"machine: no {name!r} in config/machines/{nearest(name, machines)}")
    return _read(Machine, folder, f"machines/{name}.yaml")


def load_study(folder: Path) -> Study:
    """config/study.yaml.

    Raises:
        TrisectError: it is missing or wrong, or names an experiment that has no file.
    """
    _require(folder)
    study = _read(Study, folder, "study.yaml")
    experiments = load_experiments(folder)
    for name in study.experiments:
        if name not in experiments:
            raise TrisectError(f"config/study.yaml: no {name!r} in config/experiments/{nearest(name, experiments)}")
    return study


def _require(folder: Path) -> None:
    if not folder.is_dir():
        raise TrisectError(f"{folder}: no config folder here; call this in the project's folder, or pass --config DIR")


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
    *block, name = first["loc"] or ("",)
    key = ".".join(str(part) for part in first["loc"])
    given = first["input"]
    if first["type"] == "extra_forbidden":
        return f"unknown key {key!r}{nearest(str(name), _known_keys(model, block))}"
    if first["type"] == "string_type" and isinstance(given, int | float):
        text = str(given).lower()  # YAML's true, not Python's True
        quoted = f'"{text}"' if isinstance(name, int) else f'{name}: "{text}"'
        return f"{key}: {text} is no text in YAML; put it in quotes: {quoted}"
    message = first["msg"].removeprefix("Value error, ")
    shown = f" (got {given})" if isinstance(given, str | int | float | bool) else ""
    return f"{key}: {message}{shown}" if key else message


def _known_keys(model: type[BaseModel], block: Sequence[int | str]) -> set[str]:
    """Keys of the block at a location below a model."""
    whole = here = model.model_json_schema()
    for part in block:
        inner = here.get("properties", {}).get(part) or here.get("additionalProperties") or here["items"]
        (here,) = (one for one in inner.get("anyOf") or inner.get("allOf") or [inner] if one.get("type") != "null")
        here = whole["$defs"][here["$ref"].rpartition("/")[2]] if "$ref" in here else here
    return set(here["properties"])
