"""How long a run takes and how much it writes: counted here by hand."""

from pathlib import Path

import pytest
import yaml

from trisect.config.loading import load
from trisect.config.schedule import (
    FEWEST,
    MARGIN,
    MOST_TRACE_BYTES,
    SHORTEST_LIMIT_MINUTES,
    START_S,
    iterations_run,
    limit_minutes,
    trace_bytes,
)
from trisect.config.settings import Iterations
from trisect.errors import TrisectError

CONFIG = Path(__file__).parents[3] / "config"
SETTINGS = yaml.safe_load((CONFIG / "config.yaml").read_text())
TEN = Iterations(warmup=2, measured=10, unprofiled=4)


def sweep(times, limit=120, **overrides):
    """The v100 sweep at the published size, with seconds of an iteration as given."""
    asked = {"size": "published", "machine": "v100", "gpus": [1, 4], "iterations": TEN.model_dump()}
    found = load({**SETTINGS, **asked, **overrides}, CONFIG)
    slurm = found.machine.slurm.model_copy(update={"time_limit_minutes": limit})
    machine = found.machine.model_copy(update={"slurm": slurm})
    return found.model_copy(update={"iteration_s": times, "machine": machine})


def test_all_iterations_of_a_run_are_counted():
    """The memory probe's and the profiler's warmup each, and the one that lays memory out."""
    assert iterations_run(TEN) == 1 + 2 + 2 + 10 + 4


def test_the_limit_follows_from_the_time_of_an_iteration():
    assert limit_minutes(TEN, 60) == -(-MARGIN * (START_S + 19 * 60) // 60)
    assert limit_minutes(TEN, 0.01) == SHORTEST_LIMIT_MINUTES
    assert sweep({"inference_2d": {1: 60.0}}).limit_minutes("inference_2d", 1) == limit_minutes(TEN, 60)


def test_without_a_model_the_settings_and_the_machine_s_limit_stand():
    assert sweep({}).limit_minutes("inference_2d", 1) == 120
    assert sweep({}).run("inference_2d", 1).iterations == TEN
    assert sweep({"inference_2d": {4: 1000.0}}).run("inference_2d", 1).iterations == TEN


def test_iterations_that_do_not_fit_the_limit_are_fewer():
    found = sweep({"inference_3d": {1: 172.0}}, limit=30).run("inference_3d", 1).iterations
    assert (found.measured, found.warmup, found.unprofiled) == (FEWEST.measured, 1, 2)
    assert limit_minutes(found, 172) <= 30
    some = sweep({"inference_3d": {1: 172.0}}, limit=50).run("inference_3d", 1).iterations
    assert FEWEST.measured < some.measured < TEN.measured
    assert limit_minutes(some, 172) <= 50 < limit_minutes(Iterations(warmup=1, measured=some.measured + 1), 172)


def test_a_run_that_fits_no_limit_is_refused_with_the_limit_that_it_needs():
    needs = limit_minutes(FEWEST, 172)
    with pytest.raises(
        TrisectError, match=rf"time_limit_minutes: {needs - 1} is too short for inference_3d at 1: .* {needs} minutes"
    ):
        sweep({"inference_3d": {1: 172.0}}, limit=needs - 1).runs()
    assert sweep({"inference_3d": {1: 172.0}}, limit=needs).run("inference_3d", 1).iterations == FEWEST


@pytest.mark.parametrize("times", [{}, {"training_2d": {1: 1.0, 4: 1.0}}])
def test_a_trace_that_would_be_too_large_has_fewer_iterations(times):
    """Whether or not the model knows a time: what is measured does not change when it is given some."""
    one = sweep(times)
    large, small = (one.run("training_2d", n) for n in (1, 4))
    assert small.iterations == TEN
    assert FEWEST.measured < large.iterations.measured < TEN.measured
    assert trace_bytes(large.experiment, "published", 1, large.iterations) <= MOST_TRACE_BYTES
    assert trace_bytes(large.experiment, "published", 1, TEN) > MOST_TRACE_BYTES


def test_traces_grow_with_batches_layers_and_unrolled_iterations():
    published = sweep({}).experiments
    per = {name: trace_bytes(published[name], "published", 1, TEN) for name in ("inference_2d", "training_2d")}
    assert per["training_2d"] / per["inference_2d"] == pytest.approx(4 * 5 * (64 / 2) / (256 / 4))
    assert trace_bytes(published["inference_2d"], "published", 64, TEN) == per["inference_2d"] / 64
