"""Tables of a known job, without a trace file between."""

import numpy as np
import pytest

from trisect.tables import COLLECTIVES, OUTSIDE, READINGS, SECTIONS, Trace, as_table
from trisect.trace.truth import play


def _clock(job, rank, true_ns):
    drift = np.broadcast_to(np.asarray(job.drift_ppm, dtype=float), job.world_size)[rank]
    return int(true_ns) + int(np.broadcast_to(job.offset_ns, job.world_size)[rank]) + round(true_ns * drift * 1e-6)


def _collectives(job, iteration, section, played, sequence):
    exchange = played.exchange
    for at, rank in enumerate(played.members):
        sequence[rank, exchange.group] = sequence.get((rank, exchange.group), 0) + 1
        yield {
            "rank": rank,
            "iteration": iteration,
            "section": section,
            "occurrence": 0,
            "group": exchange.group if job.flavour == "nccl" else "",
            "seq": sequence[rank, exchange.group] if job.flavour == "nccl" else -1,
            "op": exchange.op,
            "bytes": exchange.payload_bytes,
            "group_size": len(played.members),
            "start_ns": _clock(job, rank, played.arrival_ns[at]),
            "end_ns": _clock(job, rank, played.end_ns[at]),
            "hidden_ns": played.hidden_ns[at],
        }


def trace_of(job):
    """What a right reader must make of the job's traces."""
    sections, collectives, sequence = [], [], {}
    for iteration, step in enumerate(play(job), start=job.first_iteration):
        for section in step.sections:
            name = section.section.name
            for rank in range(job.world_size):
                mine = [(one, list(one.members).index(rank)) for one in section.exchanges if rank in one.members]
                edges = [(one.start_ns[at], one.compute_end_ns[at]) for one, at in mine]
                edges += [(one.arrival_ns[at], one.arrival_ns[at] + one.hidden_ns[at]) for one, at in mine]
                edges.append((section.end_ns[rank] - section.tail_ns[rank], section.end_ns[rank]))
                busy = sum(_clock(job, rank, end) - _clock(job, rank, begin) for begin, end in edges)
                row = {"rank": rank, "iteration": iteration, "section": name, "occurrence": 0}
                times = {name: _clock(job, rank, getattr(section, name)[rank]) for name in ("start_ns", "end_ns")}
                sections.append(row | times | {"busy_ns": busy})
            for one in section.exchanges:
                collectives += _collectives(job, iteration, name, one, sequence)
        if step.barrier:
            collectives += _collectives(job, iteration, OUTSIDE, step.barrier, sequence)
    readings = [
        {"rank": rank, "file": f"rank-{rank}.json", "events": 1, "repairs": 0, "repaired": "", "skipped_iterations": ""}
        | {"device_ns": 0, "unattributed_ns": 0}
        for rank in range(job.world_size)
    ]
    return Trace(as_table(sections, SECTIONS), as_table(collectives, COLLECTIVES), as_table(readings, READINGS))


@pytest.fixture(name="trace_of")
def _trace_of():
    return trace_of
