"""Bytes that a collective sends, by algorithm and route, and nccl-tests' two bandwidths.

`payload_bytes` follows nccl-tests: the buffer that every rank ends or starts with; of an all_gather the gathered
output, of a reduce_scatter and an all_to_all the whole input. https://github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md
"""

import math
from dataclasses import dataclass
from typing import Literal

from trisect.errors import TrisectError

Algorithm = Literal["ring", "tree"]
RING: Algorithm = "ring"
TREE: Algorithm = "tree"

GLOO = "gloo"
"""The backend whose all_reduce is a ring at every size; NCCL chooses, and its log says what."""

_PAYLOADS_AROUND_A_RING = {
    "all_reduce": 2,  # partial sums once around, results once around
    "all_gather": 1,
    "reduce_scatter": 1,
    "broadcast": 1,
    "reduce": 1,
}
"""What passes a ring's link, in payloads, were the ring endless; each op misses 1/n of it."""


def assumed_algorithms(ran: str) -> list[Algorithm]:
    """Algorithms whose bytes are to be taken: the one that ran, or both where it is unknown or has no byte rule."""
    both: list[Algorithm] = [RING, TREE]
    return [one for one in both if one == ran] or both


@dataclass(frozen=True)
class Sent:
    """Bytes by route, the mean over senders. Inside a node and between nodes they move at the same time."""

    inside: float  # by one GPU to others of its node
    between: float  # by one node to others


def bytes_sent(op: str, algorithm: str, payload_bytes: float, gpus: int, per_node: int) -> Sent:
    """Bytes of one collective by route.

    all_reduce in a ring: 2 N (n - 1) / n over each link, whichever route it takes. In a tree: partial sums up and
    results down every edge, of which m nodes have m - 1 between them and g GPUs of a node g - 1, so that the mean is
    2 N (m - 1) / m and 2 N (g - 1) / g. The other ops go around a ring once; an all_to_all goes straight, N / n to
    each other GPU.

    Args:
        op: as in tables.COLLECTIVES.
        algorithm: RING or TREE, as NCCL's log names it; an all_to_all knows none and takes either.
        payload_bytes: N.
        gpus: n, the ranks of the collective.
        per_node: g, GPUs that a full node has; fewer take part where `gpus` is smaller.

    Raises:
        TrisectError: no such algorithm for this op, or `gpus` that fill no whole number of nodes.
    """
    here = min(gpus, per_node)
    if gpus < 1 or per_node < 1 or gpus % here:
        raise TrisectError(f"{gpus} GPUs on nodes of {per_node}: give a count up to the node size or a multiple of it")
    nodes = gpus // here
    if op == "all_to_all":
        each = payload_bytes / gpus
        return Sent(each * (here - 1), each * here * (gpus - here))
    if algorithm == RING and op in _PAYLOADS_AROUND_A_RING:
        around = _PAYLOADS_AROUND_A_RING[op] * payload_bytes * (gpus - 1) / gpus
        return Sent(around if here > 1 else 0.0, around if nodes > 1 else 0.0)
    if algorithm == TREE and op == "all_reduce":
        return Sent(2 * payload_bytes * (here - 1) / here, 2 * payload_bytes * (nodes - 1) / nodes)
    raise TrisectError(
        f"no byte rule for {op!r} by {algorithm!r}; rings are known for all collectives, trees for all_reduce"
    )


def steps(algorithm: str, gpus: int, per_node: int) -> int:
    """Steps of an all_reduce that follow one another, each of which costs alpha.

    A ring takes 2 (n - 1). A tree goes up and down: log2 of the nodes, and from GPU to GPU within one.
    """
    here = min(gpus, per_node)
    if algorithm == RING:
        return 2 * (gpus - 1)
    return 2 * (math.ceil(math.log2(gpus // here)) + here - 1)


def algorithm_bandwidth(payload_bytes: float, seconds: float) -> float:
    """nccl-tests' algbw in bytes per second: payload over time."""
    return payload_bytes / seconds


def bus_bandwidth(op: str, payload_bytes: float, gpus: int, seconds: float) -> float:
    """nccl-tests' busbw in bytes per second: algbw times what the op must send per payload.

    all_reduce 2 (n - 1) / n; all_gather, reduce_scatter and all_to_all (n - 1) / n; broadcast and reduce 1. It equals
    the rate of the slowest link of a ring, and so compares with hardware whatever n is.

    Raises:
        TrisectError: nccl-tests defines none for this op.
    """
    share = (gpus - 1) / gpus
    factors = {"all_reduce": 2 * share, "broadcast": 1.0, "reduce": 1.0}
    factors |= dict.fromkeys(("all_gather", "reduce_scatter", "all_to_all"), share)
    if op not in factors:
        raise TrisectError(f"no bus bandwidth is defined for {op!r}; use one of {', '.join(sorted(factors))}")
    return algorithm_bandwidth(payload_bytes, seconds) * factors[op]
