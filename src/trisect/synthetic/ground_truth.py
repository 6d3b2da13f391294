"""A job whose times are stated, not measured: what `kineto_writer` writes and what tests expect back.

Every duration is an integer number of nanoseconds of true time; clocks enter only when traces are written.
A value per rank is given as one number for all ranks or as one number each.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from trisect.results.tables import ROOTED

PAUSE_NS = 2_000
"""Time before every section, as between two annotations of a real program."""

PerRank = int | float | Sequence[int] | Sequence[float]
Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SyntheticExchange:
    """Compute, then idle time, then one collective of `transfer_ns`, on the ranks of one group."""

    compute_ns: PerRank
    transfer_ns: int
    payload_bytes: int = 4096  # the whole buffer: of an all_gather its output, of a reduce_scatter its input
    op: str = "all_reduce"
    idle_ns: PerRank = 0
    hidden_ns: PerRank = 0  # compute that runs under the collective from its start; at most transfer_ns
    group: str = "0"
    ranks: tuple[int, ...] = ()  # of the group; () is every rank
    root: int = 0  # of a rooted collective


@dataclass(frozen=True)
class SyntheticSection:
    """Exchanges one after the other; then compute that no collective follows."""

    name: str
    exchanges: tuple[SyntheticExchange, ...]
    late_ns: PerRank = 0  # the rank's delay before it enters the section
    tail_ns: PerRank = 0


@dataclass(frozen=True)
class SyntheticJob:
    """All iterations of all ranks, and how wrong each rank's clock is."""

    world_size: int
    iterations: tuple[tuple[SyntheticSection, ...], ...]
    flavour: str = "gloo"  # or "nccl"
    offset_ns: PerRank = 0  # a rank's clock shows true time + offset + drift * true time
    drift_ppm: PerRank = 0
    barrier_ns: int = 0  # transfer of a barrier that closes each iteration, outside its sections; 0 is none
    first_iteration: int = 3  # profilers skip a warm-up


@dataclass(frozen=True)
class Played:
    """One exchange as it happened: arrays of true times, one value a rank, of the ranks that are members."""

    exchange: SyntheticExchange
    members: Array
    start_ns: Array
    compute_end_ns: Array
    arrival_ns: Array
    end_ns: Array
    hidden_ns: Array

    @property
    def exposed_ns(self) -> Array:
        """d[r,k] of docs/metrics.md."""
        return self.end_ns - self.arrival_ns - self.hidden_ns


@dataclass(frozen=True)
class PlayedSection:
    """One section of one iteration as it happened; arrays over all ranks."""

    section: SyntheticSection
    start_ns: Array
    end_ns: Array
    tail_ns: Array
    exchanges: list[Played] = field(default_factory=list)


@dataclass(frozen=True)
class PlayedIteration:
    """One iteration as it happened; `barrier` is None where nothing closes it."""

    start_ns: Array
    end_ns: Array
    sections: list[PlayedSection]
    barrier: Played | None


def per_rank(value: PerRank, world_size: int) -> Array:
    """`value` as an array of shape (world_size,).

    Raises:
        ValueError: neither one value nor one a rank.
    """
    return np.broadcast_to(np.asarray(value, dtype=np.int64), (world_size,))


def play(job: SyntheticJob) -> list[PlayedIteration]:
    """Run the job in true time: a rank waits in a collective until all that it needs have arrived.

    Raises:
        ValueError: the job cannot be seen in traces of its flavour.
    """
    now = np.zeros(job.world_size, dtype=np.int64)
    played = []
    for sections in job.iterations:
        begin = now
        done = []
        for section in sections:
            done.append(_play_section(section, now + PAUSE_NS, job))
            now = done[-1].end_ns
        barrier = None
        if job.barrier_ns:
            closing = SyntheticExchange(0, job.barrier_ns, payload_bytes=4, op="barrier")
            barrier = _play_exchange(closing, now + PAUSE_NS, job.world_size)
            now = barrier.end_ns
        played.append(PlayedIteration(begin, now, done, barrier))
    return played


def _play_section(section: SyntheticSection, now: Array, job: SyntheticJob) -> PlayedSection:
    start = now = now + per_rank(section.late_ns, job.world_size)
    exchanges = []
    for exchange in section.exchanges:
        exchanges.append(_play_exchange(exchange, now, job.world_size))
        now = now.copy()
        now[exchanges[-1].members] = exchanges[-1].end_ns
    tail = per_rank(section.tail_ns, job.world_size)
    _check_visible(section, start, exchanges, tail, job)
    return PlayedSection(section, start, now + tail, tail, exchanges)


def _play_exchange(exchange: SyntheticExchange, now: Array, world_size: int) -> Played:
    members = np.asarray(exchange.ranks or range(world_size), dtype=np.int64)
    start = now[members]
    compute_end = start + per_rank(exchange.compute_ns, world_size)[members]
    arrival = compute_end + per_rank(exchange.idle_ns, world_size)[members]
    hidden = per_rank(exchange.hidden_ns, world_size)[members]
    if exchange.transfer_ns < 1 or (hidden > exchange.transfer_ns).any():
        raise ValueError(f"{exchange.op}: needs a transfer of at least 1 ns and not more hidden than that")
    end = _ready(exchange, members, arrival) + exchange.transfer_ns
    return Played(exchange, members, start, compute_end, arrival, end, hidden)


def _ready(exchange: SyntheticExchange, members: Array, arrival: Array) -> Array:
    """When each member has what it needs to start moving data."""
    everyone = np.full_like(arrival, arrival.max())
    if exchange.op not in ROOTED:
        return everyone
    at_root = members == exchange.root
    if exchange.op in ("broadcast", "scatter"):  # receivers need the root, the root needs nobody
        return np.maximum(arrival, arrival[at_root][0])
    return np.where(at_root, everyone, arrival)


def _check_visible(
    section: SyntheticSection, start: Array, exchanges: list[Played], tail: Array, job: SyntheticJob
) -> None:
    """On CUDA a span opens with the first device activity, so idle time before that cannot be seen."""
    if job.flavour != "nccl":
        return
    seen = tail > 0
    for played in exchanges:
        idle_first = (played.compute_end_ns == start[played.members]) & (played.arrival_ns > played.compute_end_ns)
        if idle_first.any():
            raise ValueError(f"{section.name}: idle time before the first kernel of a section shows in no CUDA trace")
        seen[played.members] = True
    if not seen.all():
        raise ValueError(f"{section.name}: rank {int(np.argmin(seen))} runs nothing in it, so no CUDA trace shows it")
