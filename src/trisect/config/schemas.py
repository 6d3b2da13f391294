"""JSON schemas of the configuration files, for editors to complete and check against: `make schemas`."""

import json
from pathlib import Path

from trisect.config.experiment import Experiment
from trisect.config.machine import Machine
from trisect.config.settings import Settings
from trisect.config.study_settings import Study


def schemas() -> dict[str, dict[str, object]]:
    """JSON schema of each kind of configuration file, by name."""
    return {model.__name__.lower(): model.model_json_schema() for model in (Settings, Experiment, Machine, Study)}


if __name__ == "__main__":
    for name, schema in schemas().items():
        target = Path("workflow/schemas") / f"{name}.schema.json"
        target.write_text(json.dumps(schema, indent=2, sort_keys=True) + "\n")
