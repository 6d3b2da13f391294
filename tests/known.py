"""The tables of a job whose times are known, with no trace file between: what a right reader must return."""

import numpy as np

from trisect.results.tables import COLLECTIVES, OUTSIDE, READINGS, SECTIONS, Trace, as_table
from trisect.synthetic.ground_truth import SyntheticExchange, SyntheticJob, SyntheticSection, play
from trisect.synthetic.kineto_writer import BASE_NS, ORIGIN_NS

MS = 1_000_000


def job_of(*arrivals_ms, transfer_ms=1, name="s", **job):
    """One section with one all_reduce; `arrivals_ms` holds, for each iteration, the compute of each rank."""
    iterations = tuple(
        (SyntheticSection(name, (SyntheticExchange(tuple(int(ms * MS) for ms in compute), int(transfer_ms * MS)),)),)
        for compute in arrivals_ms
    )
    return SyntheticJob(len(arrivals_ms[0]), iterations, **job)


def trace_of(job):
    """The tables of `job`."""
    sections, collectives, sequence = [], [], {}
    for iteration, step in enumerate(play(job), start=job.first_iteration):
        for section in step.sections:
            sections += [_section(job, iteration, section, rank) for rank in range(job.world_size)]
            for played in section.exchanges:
                collectives += _collectives(job, iteration, section.section.name, played, sequence)
        if step.barrier:
            collectives += _collectives(job, iteration, OUTSIDE, step.barrier, sequence)
    collectives.sort(key=lambda row: (row["rank"], row["start_ns"]))
    readings = [
        {"rank": rank, "file": f"rank-{rank}.json", "events": 1, "repairs": 0, "device_ns": 0, "unattributed_ns": 0}
        for rank in range(job.world_size)
    ]
    return Trace(
        as_table(sections, SECTIONS).sort_values(["rank", "start_ns"], ignore_index=True),
        as_table(collectives, COLLECTIVES),
        as_table(readings, READINGS),
    )


def _clock(job, rank, true_ns):
    since = int(true_ns) + ORIGIN_NS
    drift = np.broadcast_to(np.asarray(job.drift_ppm, dtype=float), job.world_size)[rank]
    return BASE_NS + since + int(np.broadcast_to(job.offset_ns, job.world_size)[rank]) + round(since * drift * 1e-6)


def _section(job, iteration, section, rank):
    mine = [(one, list(one.members).index(rank)) for one in section.exchanges if rank in one.members]
    busy = [(one.start_ns[at], one.compute_end_ns[at]) for one, at in mine]
    busy += [(one.arrival_ns[at], one.arrival_ns[at] + one.hidden_ns[at]) for one, at in mine]
    busy.append((section.end_ns[rank] - section.tail_ns[rank], section.end_ns[rank]))
    return {
        "rank": rank,
        "iteration": iteration,
        "section": section.section.name,
        "occurrence": 0,
        "start_ns": _clock(job, rank, section.start_ns[rank]),
        "end_ns": _clock(job, rank, section.end_ns[rank]),
        "busy_ns": sum(_clock(job, rank, end) - _clock(job, rank, begin) for begin, end in busy),
    }


def _collectives(job, iteration, section, played, sequence):
    exchange, named = played.exchange, job.flavour == "nccl"  # gloo names no group
    for at, rank in enumerate(played.members):
        number = sequence[rank, exchange.group] = sequence.get((rank, exchange.group), 0) + 1
        start = _clock(job, rank, played.arrival_ns[at])
        yield {
            "rank": rank,
            "iteration": iteration,
            "section": section,
            "occurrence": 0,
            "group": exchange.group if named else "",
            "seq": number if named else -1,
            "op": exchange.op,
            "bytes": 0 if exchange.op == "barrier" else exchange.payload_bytes,
            "group_size": len(played.members) if named else job.world_size,
            "start_ns": start,
            "end_ns": _clock(job, rank, played.end_ns[at]),
            "hidden_ns": _clock(job, rank, played.arrival_ns[at] + played.hidden_ns[at]) - start,
        }
