"""Sums that are known: exact in float32 in any order, and wrong where anything is."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trisect.worker.exact_sums import Sum, longest_chain

CPU = torch.device("cpu")


def summed(gpus, repetition, links=1, values=28):
    """What `links` all_reduces leave on rank 0, each summed in rank order; a Sum to check it with."""
    ranks = [Sum(4 * values, rank, gpus, CPU) for rank in range(gpus)]
    for one in ranks:
        one.fill(repetition)
    for _ in range(links):
        total = torch.stack([one.buffer for one in ranks]).sum(dim=0)
        for one in ranks:
            one.buffer.copy_(total)
    return ranks[0]


@pytest.mark.parametrize("gpus", [*range(1, 65), 128, 256, 512, 1024])
def test_a_right_sum_is_right_and_one_wrong_value_is_seen(gpus):
    """Also in the longest chains, whose sums are beyond any whole number that torch takes."""
    for repetition in range(5):
        assert summed(gpus, repetition).wrong_values(repetition) == 0
    for links in range(1, longest_chain(gpus) + 1):
        one = summed(gpus, 3, links)
        right = one.buffer.clone()
        assert one.wrong_values(3, links) == 0
        one.buffer.copy_(right)
        one.buffer[9] = torch.nextafter(right[9], torch.tensor(torch.inf))
        assert one.wrong_values(3, links) == 1


def test_what_is_wrong_is_counted():
    one = summed(4, 0)
    one.buffer[[3, 5]] += 1
    assert one.wrong_values(0) == 2
    one = summed(4, 0)
    one.buffer[7] = torch.nan
    assert one.wrong_values(0) == 1


@pytest.mark.parametrize("shift", [1, 2, 4, 8, 16])
def test_a_shifted_chunk_is_seen(shift):
    one = summed(4, 0)
    one.buffer.copy_(one.buffer.roll(shift))
    assert one.wrong_values(0) == 28


def test_a_result_left_from_before_a_missing_and_a_doubled_rank_are_seen():
    assert summed(4, 0).wrong_values(1) == 28
    for change in (-1, 1):
        one = summed(4, 2)
        one.buffer += change * 3 * one.pattern  # rank 0 has put in (0 + 1 + 2) times the pattern
        assert one.wrong_values(2) == 28


def test_an_error_in_any_link_of_a_chain_is_in_its_end():
    links = longest_chain(4)
    for at in range(links):
        ranks = [Sum(4 * 28, rank, 4, CPU) for rank in range(4)]
        for one in ranks:
            one.fill(0)
        for link in range(links):
            total = torch.stack([one.buffer for one in ranks]).sum(dim=0)
            for one in ranks:
                one.buffer.copy_(total)
            if link == at:
                ranks[3].buffer[2] *= 2
        assert [one.wrong_values(0, links) for one in ranks] == ([1] * 4 if at < links - 1 else [0, 0, 0, 1])


@settings(max_examples=60, deadline=None)
@given(gpus=st.integers(1, 1300), order=st.randoms(use_true_random=False))
def test_every_partial_sum_of_a_chain_is_exact(gpus, order):
    """In any order of ranks, against whole numbers without limit."""
    links = longest_chain(gpus)
    assert links >= 1
    ranks = list(range(gpus))
    order.shuffle(ranks)
    values = [7 * (rank + 1 + 3) for rank in ranks]
    for _ in range(links):
        partial = np.cumsum(np.array(values, dtype=np.float32), dtype=np.float32)
        exact = np.cumsum(np.array(values, dtype=object))
        assert [int(x) for x in partial] == list(exact)
        values = [exact[-1]] * gpus


@pytest.mark.parametrize(("gpus", "links"), [(1, 16), (2, 16), (64, 16), (1024, 10), (3, 11), (100, 2), (5000, 0)])
def test_how_long_chains_are(gpus, links):
    assert longest_chain(gpus) == links
