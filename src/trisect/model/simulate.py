"""A run that the model makes up, as a job of known times for the trace writer."""

import numpy as np

from trisect.model.predict import Model, Piece, Values, draw, pieces
from trisect.synthetic.ground_truth import SyntheticExchange, SyntheticJob, SyntheticSection

BARRIER_NS = 50_000
"""Of the barrier that closes each iteration, so that all ranks enter the next one together."""


def job(model: Model, gpus: int, *, iterations: int, seed: int) -> SyntheticJob:
    """One run of the model: every rank, every iteration, with jitter drawn anew for each piece of work.

    Args:
        model: from `predict.of_machine`.
        gpus: ranks.
        iterations: how many.
        seed: of the jitter; runs of other counts and problems draw other numbers.
    """
    rng = np.random.default_rng([seed, gpus, *model.problem.name.encode()])
    drawn = {}
    for section in model.problem.sections:
        planned = pieces(model.problem, section, model.all_reduce(gpus))
        drawn[section] = planned, draw(planned, model.jitter[section], iterations, rng)
    steps = tuple(
        tuple(_section(name, planned, compute[step]) for name, (planned, compute) in drawn.items())
        for step in range(iterations)
    )
    return SyntheticJob(gpus, steps, flavour="nccl", barrier_ns=BARRIER_NS if gpus > 1 else 0)


def nccl_log(model: Model, gpus: int) -> str:
    """What NCCL would log of such a run: its communicator, and the algorithm of the image's all_reduce."""
    prefix, all_reduce = "modelled:1:1 [0] NCCL INFO", model.all_reduce(gpus)
    how, here = all_reduce.algorithm.upper(), min(gpus, all_reduce.per_node)
    size = model.problem.image_bytes
    return (
        f"{prefix} comm 0x1 rank 0 nRanks {gpus} nNodes {gpus // here} localRanks {here} localRank 0\n"
        f"{prefix} AllReduce: {size} Bytes -> Algo {how} proto SIMPLE channel{{Lo..Hi}}={{0..1}}\n"
    )


def _section(name: str, planned: list[Piece], compute_s: Values) -> SyntheticSection:
    """`compute_s` has shape (pieces, ranks). What no all_reduce follows joins the next piece, or ends the section."""
    waiting = np.zeros(compute_s.shape[1], dtype=np.int64)
    exchanges = []
    for piece, seconds in zip(planned, compute_s, strict=True):
        waiting = waiting + np.rint(seconds * 1e9).astype(np.int64)
        for exchange in piece.exchanges:
            transfer_ns = max(1, round(exchange.transfer_s * 1e9))
            payload = max(4, exchange.payload_bytes)
            exchanges.append(SyntheticExchange(tuple(waiting.tolist()), transfer_ns, payload_bytes=payload))
            waiting = np.zeros_like(waiting)
    return SyntheticSection(name, tuple(exchanges), tail_ns=tuple(waiting.tolist()))
