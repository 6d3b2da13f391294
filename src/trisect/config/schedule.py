"""How long a run takes and how much it writes, before it is launched, where the model knows an iteration's time."""

import math

from trisect.config.experiment import Experiment
from trisect.config.settings import Iterations

START_S = 120.0
"""What a run takes besides its iterations: starting Python on all ranks, the check against one process, the record."""

MARGIN = 1.15
"""Of the time that is asked for over the time that is expected: the profiler, and what the model misses."""

SHORTEST_LIMIT_MINUTES = 10
"""submitit takes a preempted job with a shorter limit for one that reached it."""

FEWEST = Iterations(warmup=1, measured=3, unprofiled=2)
"""With fewer there is no interval and no profiling overhead."""

MOST_TRACE_BYTES = 2_000_000_000
"""Of one rank's trace before compression: what is held and written at once."""

_EVENT_BYTES = {"inference": 9_000, "training": 36_000}
"""Of a trace, for one layer of DRUNet and one batch of tiles: forward; or forward, forward again, and backward. From
traces of the laptop sweep on CPU; on CUDA, where operators leave no shapes but kernels and launches, unmeasured."""


def iterations_run(iterations: Iterations) -> int:
    """All iterations of a run: one that lays memory out, warmup of the memory probe and of the profiler, the rest."""
    return 1 + 2 * iterations.warmup + iterations.measured + iterations.unprofiled


def run_s(iterations: Iterations, iteration_s: float) -> float:
    """Seconds of a run."""
    return START_S + iterations_run(iterations) * iteration_s


def limit_minutes(iterations: Iterations, iteration_s: float) -> int:
    """The time limit to ask for."""
    return max(SHORTEST_LIMIT_MINUTES, math.ceil(MARGIN * run_s(iterations, iteration_s) / 60))


def trace_bytes(experiment: Experiment, size: str, gpus: int, iterations: Iterations) -> int:
    """Of rank 0's trace before compression, which grows with the batches of tiles that it denoises."""
    chosen = experiment.sizes[size]
    batches = chosen.batches(chosen.most_tiles(gpus)) * experiment.unrolled_iterations
    layers = 8 + 14 * chosen.denoiser_blocks
    return iterations.measured * batches * layers * _EVENT_BYTES[experiment.mode]


def fitted_iterations(
    asked: Iterations, experiment: Experiment, size: str, gpus: int, *, iteration_s: float | None, most_minutes: float
) -> Iterations:
    """As many iterations as were asked for; or fewer, whose trace and time limit are small enough, down to FEWEST.

    Args:
        iteration_s: None where nothing is known, and only the trace counts.
    """

    def fits(iterations: Iterations) -> bool:
        in_time = iteration_s is None or limit_minutes(iterations, iteration_s) <= most_minutes
        return in_time and trace_bytes(experiment, size, gpus, iterations) <= MOST_TRACE_BYTES

    chosen = asked
    while chosen.measured > FEWEST.measured and not fits(chosen):
        measured = chosen.measured - 1
        unprofiled = min(asked.unprofiled, max(FEWEST.unprofiled, measured // 2))
        chosen = Iterations(warmup=min(asked.warmup, FEWEST.warmup), measured=measured, unprofiled=unprofiled)
    return chosen
