"""What config/study.yaml says of messages follows from the experiments' own files, or from traces of deepinv."""

import math

import pytest
from modelled import CONFIG

from trisect.config.footprint import parameters
from trisect.config.loading import load_experiments, load_study
from trisect.model.predict import problem

EXPERIMENTS = load_experiments(CONFIG)
STUDIED = load_study(CONFIG).experiments
PAYLOADS = {"inference_2d": 805_306_368, "inference_3d": 536_870_912}
"""Published."""


@pytest.mark.parametrize("name", STUDIED)
def test_bytes_channels_and_tiles_are_those_of_the_experiment_s_published_size(study, name):
    """The model once took three channels where the experiment had one."""
    size = EXPERIMENTS[name].sizes[study.size]
    modelled = problem(name, EXPERIMENTS[name], study.experiments[name], study.size)
    assert modelled.image_bytes == 4 * math.prod(size.image)
    assert modelled.image_bytes == PAYLOADS.get(name, modelled.image_bytes)
    assert (modelled.tiles, modelled.operators) == (size.tiles, EXPERIMENTS[name].operators)
    assert modelled.unrolled == EXPERIMENTS[name].unrolled_iterations


@pytest.mark.parametrize("name", [name for name in STUDIED if EXPERIMENTS[name].training])
def test_messages_of_a_training_step_follow_from_its_unrolled_iterations_and_its_denoiser(study, name):
    """As docs/model.md counts them in traces of deepinv 0.5."""
    experiment, sections = EXPERIMENTS[name], study.experiments[name].sections
    unrolled, layers = experiment.unrolled_iterations, 8 + 14 * experiment.sizes[study.size].denoiser_blocks
    assert sections["forward"].image_all_reduces == 2 * (unrolled + 1)
    assert sections["backward"].image_all_reduces == 3 * (unrolled - 1) + 1
    assert sections["backward"].other_all_reduces == layers + 2 * unrolled
    assert sections["backward"].other_bytes == 4 * parameters(experiment.sizes[study.size])
