"""NCCL's tuning lines in every form that is known, joined, interleaved and cut."""

import pytest

from trisect.network.nccl_log import TUNING, UNKNOWN_ALGORITHM, algorithm_for, read_tuning

PLAIN = "8 Bytes -> Algo 0 proto 0 time 25.200924"
FORMS = [  # each of a ring, or tree where it says 0 or TREE
    (PLAIN, ("", 8, "tree", "ll")),
    ("AllGather: 37756928 Bytes -> Algo 1 proto 2 time 2860.208008", ("all_gather", 37756928, "ring", "simple")),
    ("AllReduce: 4096 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..1}", ("all_reduce", 4096, "tree", "ll")),
    ("AllReduce: 9 Bytes -> Algo Ring proto LL128 channel{Lo..Hi}={0..15}", ("all_reduce", 9, "ring", "ll128")),
    (
        "ReduceScatter: 7 Bytes -> Algo NVLS proto SIMPLE channel{Lo..Hi}={0..0}",
        ("reduce_scatter", 7, "nvls", "simple"),
    ),
    ("5 Bytes -> Algo 9 proto 1 time 1.0", ("", 5, "number 9", "ll128")),
]
PREFIXES = ["", "NCCL INFO ", "host-1:497888:497888 [0] NCCL INFO ", "[0] host-1:4:5 [3] NCCL INFO "]
PREFIXES += ["[2026-11-29 12:00:00] host-1:4:5 [3] NCCL INFO ", "0: node-1:397:397 [0] NCCL INFO "]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(("line", "means"), FORMS)
def test_every_known_form(prefix, line, means):
    table, cut = read_tuning(f"{prefix}{line}\n")
    assert list(table.columns) == list(TUNING)
    assert table.iloc[0].tolist() == [*means, 1, -1, -1]
    assert cut == 0


def test_lines_are_counted_and_the_communicator_is_read():
    text = "h:1:1 [0] NCCL INFO comm 0x5 rank 0 nRanks 8 nNodes 2 localRanks 4 localRank 0 MNNVL 0\n"
    text += "h:1:1 [0] NCCL INFO comm 0x6 rank 0 nRanks 4 nNodes 1 localRanks 4 localRank 0\n"  # a smaller group
    text += f"h:1:1 [0] NCCL INFO {PLAIN}\n" * 3
    table, _ = read_tuning(text)
    assert table.iloc[0].tolist() == ["", 8, "tree", "ll", 3, 8, 2]


def test_joined_lines_are_both_read():
    first, second = (f"h:{rank}:{rank} [{rank}] NCCL INFO AllReduce: {size} Bytes" for rank, size in ((0, 10), (1, 20)))
    joined = f"{first} -> Algo 1 proto 2 time 5.5{second} -> Algo 0 proto 2 time 6.5"
    table, cut = read_tuning(joined)
    assert list(zip(table["bytes"], table["algorithm"], strict=True)) == [(10, "ring"), (20, "tree")]
    assert cut == 0


WHOLE = "805306368 Bytes -> Algo 1 proto 2 time 25.2"


@pytest.mark.parametrize("kept", range(len("805306368 Bytes -"), len(WHOLE) - 1))
def test_a_line_cut_anywhere_is_left_out_and_counted(kept):
    """Another rank breaks in; what it wrote is whole."""
    table, cut = read_tuning(f"h:0:0 [0] NCCL INFO AllReduce: {WHOLE[:kept]}h:1:1 [1] NCCL INFO {PLAIN}\n")
    assert table["bytes"].tolist() == [8]
    assert cut == 1


def test_no_line_is_an_empty_table():
    table, cut = read_tuning("NCCL INFO Channel 00/02 : 0 1 2 3\n")
    assert table.empty
    assert list(table.columns) == list(TUNING)
    assert cut == 0


def test_algorithm_for_a_size():
    table, _ = read_tuning("\n".join(line for line, _ in FORMS))
    assert algorithm_for(table, "all_reduce", 4096) == "tree"
    assert algorithm_for(table, "all_reduce", 8) == "tree"  # a form that names no op
    assert algorithm_for(table, "all_reduce", 37756928) == UNKNOWN_ALGORITHM  # that was an all_gather
    both, _ = read_tuning("8 Bytes -> Algo 0 proto 0 time 1.0\n8 Bytes -> Algo 1 proto 2 time 1.0\n")
    assert algorithm_for(both, "all_reduce", 8) == "ring, tree"
