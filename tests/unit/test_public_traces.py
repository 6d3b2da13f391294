"""Public traces that cannot be decomposed: refused, never believed."""

from dataclasses import replace

import pytest
from samples import SAMPLES, needs_samples

from trisect.analysis.decomposition import decompose
from trisect.errors import TrisectError
from trisect.trace.read_job import read_job

pytestmark = needs_samples


def test_one_rank_of_two():
    with pytest.raises(TrisectError, match="collectives of 2 ranks, but traces of 1"):
        decompose(read_job([SAMPLES / "ddp_nccl_rank0_of_2.json.gz"], workers=1))


def test_sampled_events_do_not_pair_by_order():
    trace = read_job([SAMPLES / f"sampled_rank{rank}_of_128.json.gz" for rank in (0, 1)], workers=1)
    with pytest.raises(TrisectError, match="collectives of 128 ranks, but traces of 2"):
        decompose(trace)
    # Even if these two were all there is: which events were sampled differs between them.
    with pytest.raises(TrisectError, match=r"iteration 551, .* ran on rank 0 but not on rank 1"):
        decompose(replace(trace, collectives=trace.collectives.assign(group_size=2)))
