"""The model without jitter against hand arithmetic, with jitter against the mean of a maximum; and what it refuses."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trisect.config.loading import load_experiments
from trisect.config.machine import Links, Machine
from trisect.config.study_settings import StudyExperiment, Work
from trisect.errors import TrisectError
from trisect.model.allreduce_cost import links_of, of_links
from trisect.model.predict import MODELLED, AllReduce, Piece, Problem, draw, held, of_machine, pieces, predict, problem
from trisect.model.predict import times as section_times

LINKS = Links(pair_gb_per_s=10, network_gb_per_s={"ring": 2, "tree": 4}, tree_nodes=[2], step_us=0)
MACHINE = Machine(launcher="slurm", device="cuda", backend="nccl", gpus_per_node=4, links=LINKS)
SMALL = Problem(
    name="small",
    tiles=8,
    operators=2,
    unrolled=1,
    image_bytes=8_000_000_000,
    least_gpus=1,
    tile_work=1,
    sections={"gradient": Work(operators_s=4, repeated_s=1), "denoiser": Work(tiles_s=80)},
)


def row(table, section, gpus):
    return table[(table["section"] == section) & (table["gpus"] == gpus)].iloc[0]


def test_counts_dealt_in_turn():
    assert list(held(8, 3)) == [3, 3, 2]
    assert list(held(2, 4)) == [1, 1, 0, 0]


@given(st.integers(0, 2000), st.integers(1, 1024))
def test_all_are_dealt_and_the_busiest_holds_the_ceiling(count, ranks):
    dealt = held(count, ranks)
    assert dealt.sum() == count
    assert dealt.max() == -(-count // ranks)
    assert dealt.max() - dealt.min() <= 1


@pytest.mark.parametrize(
    ("gpus", "seconds"),
    [
        (1, 0.0),
        (2, 8 / 10),  # one payload over one link
        (4, 12 / 30),  # 1.5 payloads over three links at once
        (8, 8 / 4),  # tree: one payload over the network
        (16, 15 / 2),  # ring: 2 x 15/16 payloads over the network
        (1024, 2 * 8 * 1023 / 1024 / 2),
    ],
)
def test_transfer_is_bytes_over_rate(gpus, seconds):
    assert of_links(LINKS, 4)(gpus).transfer_s(8e9) == pytest.approx(seconds)


def test_every_step_costs_alpha():
    slow = LINKS.model_copy(update={"step_us": 10})
    assert of_links(slow, 4)(16).transfer_s(0, 3) == pytest.approx(3 * 30 * 10e-6)


def test_times_by_hand_without_jitter():
    table = predict(of_machine(SMALL, MACHINE, LINKS), [1, 4])
    assert tuple(table.columns) == MODELLED
    assert row(table, "gradient", 1)[["span_s", "compute_s", "transfer_s", "wait_s"]].tolist() == [5, 5, 0, 0]
    four = row(table, "gradient", 4)  # two ranks compute 3 s, two 1 s
    assert four["compute_s"] == pytest.approx(2)
    assert four["compute_max_s"] == pytest.approx(3)
    assert four["wait_s"] == pytest.approx(1)
    assert four["transfer_s"] == pytest.approx(0.4)
    assert four["load_balance"] == pytest.approx(2 / 3)
    assert four["comm_efficiency"] == pytest.approx(3 / 3.4)
    assert four["cost"] == pytest.approx(4 * 3.4 / 5)
    total = row(table, "total", 4)
    assert total["span_s"] == pytest.approx(3.4 + 20.4)
    assert total["cost"] == pytest.approx(4 * 23.8 / 85)


def test_unrolled_iterations_synchronise_at_each_all_reduce():
    work = Work(operators_s=2, tiles_s=16, image_all_reduces=5, other_all_reduces=3, other_bytes=10)
    unrolled = replace(SMALL, unrolled=2, sections={"forward": work})
    planned = pieces(unrolled, "forward", of_links(LINKS, 4)(4))
    assert [piece.compute_s.max() for piece in planned] == pytest.approx([0.5, 2, 0.5, 2])
    assert [len(piece.exchanges) for piece in planned] == [1, 1, 1, 1 + 1 + 1]  # one left over, and the small ones
    fewer = replace(unrolled, sections={"forward": work.model_copy(update={"image_all_reduces": 2})})
    assert [piece.compute_s.max() for piece in pieces(fewer, "forward", of_links(LINKS, 4)(4))] == pytest.approx(
        [2.5, 2.5]
    )


@pytest.mark.parametrize("ranks", [2, 8, 64])
def test_wait_is_the_mean_of_a_maximum(ranks):
    """Of n draws uniform within +-a, the largest is a (n - 1) / (n + 1) above the mean, on average."""
    planned = [Piece(np.ones(ranks), (AllReduce(1, 0.25),))]
    found = section_times(planned, draw(planned, 0.03, 40_000, np.random.default_rng(1)))
    assert found["wait_s"] == pytest.approx(0.03 * (ranks - 1) / (ranks + 1), rel=0.02)
    assert found["compute_s"] == pytest.approx(1, rel=1e-3)


def test_with_several_pieces_the_critical_path_hops():
    """Rank 0 has all of the first piece, rank 1 all of the second: each waits for the other, none has more."""
    planned = [Piece(np.array([2.0, 0.0]), (AllReduce(1, 0.5),)), Piece(np.array([0.0, 2.0]), (AllReduce(1, 0.5),))]
    found = section_times(planned, draw(planned, 0, 1, np.random.default_rng(0)))
    assert found == {"span_s": 5, "compute_s": 2, "transfer_s": 1, "wait_s": 2, "compute_max_s": 2}


def test_one_seed_gives_one_answer(problems, v100):
    ask = of_machine(problems["inference_2d"], v100, v100.links), [1, 64]
    assert predict(*ask).equals(predict(*ask))
    assert not predict(*ask).equals(predict(*ask, seed=1))


def test_what_cannot_be_modelled_is_refused():
    experiment = load_experiments(Path(__file__).parents[3] / "config")["inference_2d"]
    with pytest.raises(TrisectError, match="give gradient and denoiser, not forward"):
        problem("inference_2d", experiment, StudyExperiment(sections={"forward": Work()}), "published")
    with pytest.raises(TrisectError, match="no size 'big'"):
        problem("inference_2d", experiment, StudyExperiment(sections={}), "big")
    with pytest.raises(TrisectError, match=r"machines/mine\.yaml: no links"):
        links_of(MACHINE.model_copy(update={"links": None}), "mine")
    with pytest.raises(TrisectError, match="6 GPUs on nodes of 4"):
        predict(of_machine(SMALL, MACHINE, LINKS), [6])
