"""Small runs for tests of the worker, in this process."""

from __future__ import annotations

from typing import Any

import torch

from trisect.config.experiment import Experiment
from trisect.config.plan import Run
from trisect.config.settings import Iterations

CPU = torch.device("cpu")

SIZE = {"image": [1, 64, 64], "patch": 32, "overlap": 8, "denoiser_channels": [2, 2, 4, 4], "denoiser_blocks": 1}


def small(mode: str = "inference", *, size: dict[str, Any] | None = None, gpus: int = 1, **changes: Any) -> Run:
    """A run of deconvolution by three operators, with keys of the size and of the experiment changed."""
    run = {key: changes.pop(key) for key in ("precision", "seed") if key in changes}
    experiment = {"problem": "deconvolution", "mode": mode, "operators": 3, "sizes": {"small": SIZE | (size or {})}}
    return Run(
        **{"precision": "fp32", "seed": 0} | run,
        name="small",
        gpus=gpus,
        size="small",
        experiment=Experiment.model_validate(experiment | changes),
        iterations=Iterations(),
        device="cpu",
        backend="gloo",
        environment={},
        collective_timeout_s=60,
    )
