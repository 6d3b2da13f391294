"""One size of a probe, by hand."""

import pytest

from trisect.network.probe_statistics import ISOLATED, STREAMED, summary

TIMES = [[1.0, 4.0, 2.0, 8.0, 3.0], [3.0, 2.0, 6.0, 2.0, 3.0]]  # of 2 ranks


def test_isolated_takes_the_rank_that_waits_for_nobody():
    found = summary(ISOLATED, 3_000_000_000, 4, TIMES)  # 1, 2, 2, 2, 3
    assert (found["repetitions"], found["min_s"], found["median_s"]) == (5, 1, 2)
    assert (found["p95_s"], found["p99_s"]) == pytest.approx((2.8, 2.96))  # a fifth and a 25th below the longest


def test_streamed_takes_the_mean_over_ranks_as_nccl_tests_does():
    found = summary(STREAMED, 3_000_000_000, 4, TIMES)  # 2, 3, 4, 5, 3
    assert (found["min_s"], found["median_s"]) == (2, 3)


@pytest.mark.parametrize(("gpus", "busbw"), [(1, 0), (2, 1.5), (4, 2.25), (8, 2.625)])
def test_bandwidths_by_nccl_tests_definitions(gpus, busbw):
    """algbw is size over time; busbw that times 2 (n - 1) / n: doc/PERFORMANCE.md of nccl-tests."""
    found = summary(ISOLATED, 3_000_000_000, gpus, TIMES)
    assert found["algbw_gb_per_s"] == pytest.approx(1.5)
    assert found["busbw_gb_per_s"] == pytest.approx(busbw)
