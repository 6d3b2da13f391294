"""What is said of a sweep before it is launched, and what is refused."""

import shutil
from pathlib import Path

import pytest
import yaml

from trisect.config.loading import load
from trisect.errors import TrisectError
from trisect.launch.forecast import forecast, with_times
from trisect.launch.job import Job
from trisect.launch.request import request
from trisect.report.text.note_words import all_in_words

CONFIG = Path(__file__).parents[3] / "config"
SETTINGS = yaml.safe_load((CONFIG / "config.yaml").read_text())
PUBLISHED = {"size": "published", "machine": "v100", "gpus": [1, 4, 64]}


def planned(**overrides):
    return with_times(load({**SETTINGS, **overrides}, CONFIG), CONFIG)


def test_the_laptop_has_no_model_and_no_memory_to_check():
    assert planned().iteration_s == {}
    assert forecast(planned()) == []
    assert with_times(planned(**PUBLISHED), CONFIG / "nowhere").iteration_s == planned(**PUBLISHED).iteration_s


def test_time_is_the_model_s_of_all_sections():
    times = planned(**PUBLISHED).iteration_s
    assert times["inference_3d"][1] == pytest.approx(172, rel=0.01)
    assert times["inference_2d"][1] == pytest.approx(18.3 + 0.26, rel=0.02)
    assert set(times["training_3d"]) == {4, 64}


def test_every_run_and_the_sum_of_them_is_said():
    sweep = planned(**PUBLISHED)
    lines = all_in_words(forecast(sweep), "GPU")
    assert len(lines) == len(sweep.runs()) + 1
    first = next(line for line in lines if line.startswith("inference_3d at 1 GPU:"))
    assert "8 measured iterations in 51 minutes, limit 59 minutes (modelled); 13.6 of 32 GiB a rank (counted)" in first
    total_s = sum(
        120 + (5 + r.iterations.measured + r.iterations.unprofiled) * sweep.iteration_s[r.name][r.gpus]
        for r in sweep.runs()
        if r.iterations.warmup == 2
    )
    total_s += sum(
        120 + (3 + r.iterations.measured + r.iterations.unprofiled) * sweep.iteration_s[r.name][r.gpus]
        for r in sweep.runs()
        if r.iterations.warmup == 1
    )
    assert lines[-1].startswith(f"the sweep: {total_s / 3600:.1f} hours of runs")


def test_on_this_machine_no_limit_is_asked_for_and_none_refuses():
    sweep = load({**SETTINGS, **PUBLISHED}, CONFIG)
    slurm = sweep.machine.slurm.model_copy(update={"time_limit_minutes": 5})
    local = sweep.machine.model_copy(update={"launcher": "local", "slurm": slurm})
    timed = with_times(sweep.model_copy(update={"machine": local}), CONFIG)
    (line, *_) = all_in_words(forecast(timed), "GPU")
    assert line.startswith("inference_2d at 1 GPU: 8 measured iterations in 7 minutes (modelled); 23.3 of 32 GiB")


def test_memory_alone_is_said_where_there_is_no_model():
    machine = load({**SETTINGS, **PUBLISHED}, CONFIG).machine.model_copy(update={"links": None})
    sweep = with_times(load({**SETTINGS, **PUBLISHED}, CONFIG).model_copy(update={"machine": machine}), CONFIG)
    (line, *_) = all_in_words(forecast(sweep), "GPU")
    said = "8 measured iterations; 23.3 of 32 GiB a rank (counted); about 295 MB of trace a rank"
    assert line == f"inference_2d at 1 GPU: {said}"


def test_the_job_asks_for_the_time_that_it_needs():
    sweep = planned(**PUBLISHED)
    run = sweep.run("inference_3d", 1)
    line = request(Job.of(run, sweep.limit_minutes("inference_3d", 1)), sweep.machine)
    assert "at most 59 minutes" in line
    assert "--time=59" in line
    assert "--time=120" in request(Job.of(run), sweep.machine)


def test_a_count_whose_memory_or_time_is_too_small_is_refused_before_launch(tmp_path):
    with pytest.raises(TrisectError, match=r"training_3d at size published fits on 3 GPUs of 32 GiB or more"):
        planned(**PUBLISHED | {"gpus": [1, 2]})
    shutil.copytree(CONFIG, tmp_path / "config")
    file = tmp_path / "config" / "machines" / "v100.yaml"
    text = file.read_text()
    file.write_text(text.replace("gpu_memory_gb: 32", "gpu_memory_gb: 8"))
    with pytest.raises(
        TrisectError, match=r"sizes.published: a rank needs .* GiB at any count, .* lower batch or patch"
    ):
        load({**SETTINGS, **PUBLISHED}, tmp_path / "config")
    file.write_text(text.replace("time_limit_minutes: 120", "time_limit_minutes: 20"))
    with pytest.raises(TrisectError, match=r"time_limit_minutes: 20 is too short for inference_3d at 1"):
        with_times(load({**SETTINGS, **PUBLISHED}, tmp_path / "config"), tmp_path / "config")
