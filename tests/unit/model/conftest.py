"""The shipped machine and study."""

import pytest
from modelled import CONFIG

from trisect.config.loading import load_experiments, load_machine, load_study
from trisect.model.predict import Problem, problem


@pytest.fixture(scope="session", name="v100")
def _v100():
    return load_machine("v100", CONFIG)


@pytest.fixture(scope="session", name="study")
def _study():
    return load_study(CONFIG)


@pytest.fixture(scope="session", name="problems")
def _problems(study, v100) -> dict[str, Problem]:
    experiments, memory = load_experiments(CONFIG), v100.gpu_memory_gb
    return {name: problem(name, experiments[name], one, study.size, memory) for name, one in study.experiments.items()}
