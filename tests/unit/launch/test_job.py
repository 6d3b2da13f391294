"""From a planned run or probe to the job that measures it."""

from __future__ import annotations

from pathlib import Path

import yaml

from trisect.config.loading import load
from trisect.config.plan import ProbeRun, Run
from trisect.launch.job import Job

CONFIG = Path(__file__).parents[3] / "config"
SWEEP = load(yaml.safe_load((CONFIG / "config.yaml").read_text()), CONFIG)


def test_the_job_of_a_run() -> None:
    run = SWEEP.run("training_2d", 2)
    payload = run.payload()
    assert Job.of(run) == Job("training_2d gpus-2", "trisect.worker.run_worker:work", payload, 2, 8)
    assert Job.of(Run.model_validate_json(payload)).payload == payload, "as the rule's script builds it"


def test_the_job_of_a_probe() -> None:
    probe = SWEEP.probe(4, "chosen")
    payload = probe.payload()
    assert Job.of(probe) == Job("probe gpus-4 chosen", "trisect.worker.probe_worker:work", payload, 4, 21)
    assert Job.of(ProbeRun.model_validate_json(payload)).payload == payload
