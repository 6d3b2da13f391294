"""config/config.yaml, key by key."""

from typing import Literal

from pydantic import Field, field_validator

from trisect.config.fields import Closed, Count, Natural, distinct

Precision = Literal["fp32", "tf32", "amp"]
"""float32; float32 whose matrix products round to TF32; the denoiser under torch.autocast."""

COARSER = {"fp32": 1, "tf32": 10, "amp": 100}
"""By precision, how many times as far a result may be from one process. On two CPU ranks with amp, a gradient that is a
sum of bfloat16 roundings in another order was 0.006 of its norm off, of 0.01 that are allowed."""


class Iterations(Closed):
    """How often each run repeats its iteration."""

    warmup: Natural = 2
    """Iterations before anything is kept; the profiler is already on in them."""
    measured: Count = 10
    """Profiled iterations that are kept. Intervals are over these."""
    unprofiled: Count = 4
    """Iterations timed with the profiler off, half before and half after: they give the profiling overhead."""


class PredictSettings(Closed):
    """What `snakemake predict` starts from."""

    fit: list[Count] | None = None
    """Counts of `gpus` that the model is fitted to; all others are held out. null: the two smallest whose ranks have
    cores of their own."""


class Settings(Closed):
    """config/config.yaml: what the sweep covers."""

    machine: str = "laptop"
    """A file of config/machines/, without .yaml."""
    size: str = "laptop"
    """A key of `sizes` in each experiment's file."""
    experiments: list[str] = Field(min_length=1)
    """Files of config/experiments/, without .yaml."""
    gpus: list[Count] = Field(min_length=1)
    """World sizes to run: one rank per GPU, or per CPU process where the machine's device is cpu."""
    iterations: Iterations = Iterations()
    """How often each run repeats its iteration."""
    precision: Precision = "fp32"
    """Arithmetic of the denoiser: fp32, tf32 (NVIDIA GPUs from A100 on) or amp (torch.autocast)."""
    seed: int = 0
    """Of the ground truth, the noise and random denoiser weights; equal on all ranks."""
    results: str = "results"
    """Folder that everything is written to."""
    against: str | None = None
    """Results folder of an earlier sweep, the baseline that this one is compared with; null: none."""
    predict: PredictSettings = PredictSettings()
    """What `snakemake predict` starts from."""

    _each_once = field_validator("gpus", "experiments")(distinct)
