import torch

from trisect.worker.memory import PeakMemory
from trisect.worker.provenance import cores_by_host


def test_peak_is_that_of_the_section_that_allocated() -> None:
    peak, size = PeakMemory(torch.device("cpu")), 256 * 2**20
    with peak("small"):
        torch.ones(8)
    with peak("large"):
        torch.ones(size // 4)
    with peak("after"):
        torch.ones(8)
    assert peak.peak_bytes["large"] - peak.peak_bytes["small"] > 0.9 * size
    assert peak.peak_bytes["large"] - peak.peak_bytes["after"] > 0.9 * size


def test_cores_of_a_host_are_those_of_its_ranks_together() -> None:
    bound = [("a", {0, 1}), ("a", {2, 3}), ("b", {0, 1}), ("b", {0, 1})]
    assert cores_by_host(bound) == {"a": 4, "b": 2}
