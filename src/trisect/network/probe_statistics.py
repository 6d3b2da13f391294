"""What one size of a probe comes to: from every rank's times to a row of tables.ALL_REDUCE."""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from trisect.network.byte_rules import algorithm_bandwidth, bus_bandwidth

Cadence = Literal["separated", "back_to_back"]
ISOLATED: Cadence = "separated"
STREAMED: Cadence = "back_to_back"

CADENCES: dict[Cadence, Callable[..., npt.NDArray[np.float64]]] = {
    ISOLATED: np.min,  # the last rank to leave the barrier waits for nobody: tables' `transfer`
    STREAMED: np.mean,  # as nccl-tests; without a barrier no rank is ahead for long
}
"""How often all_reduces follow each other, and how the ranks' times of one of them become its time."""


def summary(cadence: Cadence, payload_bytes: int, gpus: int, times_s: Sequence[Sequence[float]]) -> dict[str, float]:
    """Statistics over repetitions, and nccl-tests' bandwidths of the median.

    Percentiles interpolate between repetitions: of 5 of them, p99 is all but the longest.

    Args:
        cadence: a key of CADENCES.
        payload_bytes: of every repetition.
        gpus: ranks of the all_reduce.
        times_s: by rank, then repetition.

    Returns:
        repetitions, min_s, median_s, p95_s, p99_s, algbw_gb_per_s, busbw_gb_per_s.
    """
    of_each = CADENCES[cadence](np.asarray(times_s), axis=0)
    median, p95, p99 = np.percentile(of_each, [50, 95, 99])
    return {
        "repetitions": len(of_each),
        "min_s": of_each.min(),
        "median_s": median,
        "p95_s": p95,
        "p99_s": p99,
        "algbw_gb_per_s": algorithm_bandwidth(payload_bytes, median) / 1e9,
        "busbw_gb_per_s": bus_bandwidth("all_reduce", payload_bytes, gpus, median) / 1e9,
    }
