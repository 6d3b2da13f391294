"""From what is known of a failed job to its cause and a remedy: pure functions, no clock, no scheduler."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trisect.launch.job import Job
from trisect.launch.outcome import Outcome
from trisect.launch.slurm_client import SlurmState
from trisect.wording import ranks

_OF_PEERS = re.compile(
    r"gloo|nccl|DistBackendError|DistNetworkError|DistStoreError|Connection (closed|reset|refused)|Broken pipe"
    r"|timed out|timeout|TCPStore",
    re.IGNORECASE,
)
"""Errors by which a rank learns that another one is gone or late."""
_FULL = re.compile("No space left on device|Disk quota exceeded")
_TIMED_OUT = re.compile(r"time[d]? ?out", re.IGNORECASE)

SIGKILL, SIGTERM = 9, 15
FULL_BYTES = 1 << 20
"""Less free space than this is a full disk."""


@dataclass(frozen=True)
class Evidence:
    """All that is known when a job has ended badly."""

    job: Job
    outcomes: Mapping[int, Outcome]
    """The last record of each rank that left one; "running" where none was written at its end."""
    collective_timeout_s: int
    free_bytes: int | None = None
    """On the disk that holds the results."""
    slurm: SlurmState | None = None
    job_id: str = ""
    time_limit_minutes: int = 0
    memory_gb: int | None = None
    lost: frozenset[int] = field(default_factory=frozenset)
    """Ranks whose supervisor was gone without having written an end."""


@dataclass(frozen=True)
class Diagnosis:
    """What happened, as the start of a sentence; whose log shows it; what to change."""

    sentence: str
    rank: int | None
    """None where the log of the job as a whole says more than any rank's."""
    advice: str


def diagnose(evidence: Evidence) -> Diagnosis:
    """The cause of a failed job: what SLURM did to it if that explains it, else the rank that failed first."""
    return _full_disk(evidence) or _by_slurm(evidence) or _by_rank(evidence) or _without_cause(evidence)


def _full_disk(evidence: Evidence) -> Diagnosis | None:
    hit = [o for o in evidence.outcomes.values() if o.error and _FULL.search(o.error)]
    full = evidence.free_bytes is not None and evidence.free_bytes < FULL_BYTES
    if not hit and not full:
        return None
    who = f"rank {hit[0].rank} on {hit[0].host} could not write ({hit[0].error}): " if hit else ""
    return Diagnosis(
        f"{who}the disk that holds the results is full",
        hit[0].rank if hit else None,
        "free space there or set `results` to a larger disk, then rerun; nothing of this run was kept",
    )


def _by_slurm(evidence: Evidence) -> Diagnosis | None:
    slurm = evidence.slurm
    if slurm is None:
        return None
    job = f"SLURM job {evidence.job_id}"
    if slurm.hopeless:
        advice = "change slurm in the machine file (partition, time_limit_minutes, account, qos) or ask for fewer GPUs"
        return Diagnosis(f"{job} would never start, for the reason {slurm.reason}, and was cancelled", None, advice)
    where = f" on {slurm.nodes}" if slurm.nodes else ""
    latest = _still_running(evidence)
    sentences = {
        "TIMEOUT": (
            f"{job} reached its time limit of {evidence.time_limit_minutes} minutes{where}",
            f"raise slurm.time_limit_minutes (now {evidence.time_limit_minutes}) in the machine file",
        ),
        "DEADLINE": (f"{job} passed its deadline{where}", "remove the deadline from slurm.extra, or ask for less time"),
        "OUT_OF_MEMORY": (
            f"{job} ran out of memory{where}",
            f"raise slurm.memory_gb_per_node (now {evidence.memory_gb or 'the site default'}) in the machine file, "
            "or choose a smaller size",
        ),
        "NODE_FAIL": (
            f"{job} lost a node{where}",
            "rerun; if it is the same node again, add it to slurm.extra as exclude",
        ),
        "BOOT_FAIL": (f"{job} could not boot its nodes{where}", "rerun, or choose another partition or constraint"),
        "PREEMPTED": (
            f"{job} was preempted by a job of higher priority{where}",
            "rerun, or choose a partition or qos that is not preempted",
        ),
        "REVOKED": (f"{job} was moved to another cluster", "rerun"),
        "CANCELLED": (
            f"{job} was cancelled{f' by {slurm.by}' if slurm.by else ' by someone else'}{where}",
            "rerun if that was not meant",
        ),
    }
    if slurm.state not in sentences:
        return None
    sentence, advice = sentences[slurm.state]
    return Diagnosis(sentence, latest, advice)


def _still_running(evidence: Evidence) -> int | None:
    """A rank that had not ended by itself: its log says how far the job was."""
    return min((rank for rank, o in evidence.outcomes.items() if o.status in ("running", "stopped")), default=None)


def _by_rank(evidence: Evidence) -> Diagnosis | None:
    ended = sorted((o for o in evidence.outcomes.values() if o.ended_s), key=lambda o: o.ended_s or 0.0)
    own = [o for o in ended if _caused(o)]
    if own:
        return _one(own[0])
    lost = evidence.lost or _unheard_after_a_stop(evidence)
    if lost:
        rank = min(lost)
        known = evidence.outcomes.get(rank)
        on = f" on {known.host}" if known else ""
        return Diagnosis(
            f"rank {rank}{on} was killed together with its supervisor",
            rank,
            "rerun; if it happens again, look in the kernel's log of that host for the out-of-memory killer",
        )
    raised = [o for o in ended if o.status == "raised"]
    silent = [r for r in range(evidence.job.ranks) if r not in {o.rank for o in raised}]
    if raised and silent and all(_TIMED_OUT.search(o.error or "") for o in raised):
        return _hang(evidence, sorted(o.rank for o in raised), silent)
    suffered = raised or [o for o in ended if o.status == "killed"]
    return _one(suffered[0]) if suffered else None


def _caused(outcome: Outcome) -> bool:
    """Whether the rank failed by itself: not because of a peer, and not because it was asked to end."""
    if outcome.status == "killed":
        return outcome.code != SIGTERM
    return outcome.status in ("refused", "exited") or (outcome.status == "raised" and not _peers(outcome))


def _unheard_after_a_stop(evidence: Evidence) -> frozenset[int]:
    """Ranks that the record still calls running, although their peers were told to stop and said so."""
    if not any(o.status == "stopped" for o in evidence.outcomes.values()):
        return frozenset()
    return frozenset(rank for rank, o in evidence.outcomes.items() if o.status == "running")


def _peers(outcome: Outcome) -> bool:
    return bool(_OF_PEERS.search(outcome.error or ""))


def _hang(evidence: Evidence, waited: Sequence[int], silent: Sequence[int]) -> Diagnosis:
    known = evidence.outcomes.get(silent[0])
    on = f" on {known.host}" if known else ""
    return Diagnosis(
        f"{ranks(silent)}{on} did not join a collective within {evidence.collective_timeout_s} s, "
        f"for which {ranks(waited)} waited",
        silent[0],
        "see in that log how far it came; if it is only slow, raise collective_timeout_s in the machine file",
    )


def _one(outcome: Outcome) -> Diagnosis:
    who = f"rank {outcome.rank} on {outcome.host}"
    if outcome.status == "refused":
        return Diagnosis(f"{who} was not started: {outcome.error}", outcome.rank, "see slurm.srun_args and slurm.extra")
    if outcome.status == "killed":
        advice = (
            "rerun" if outcome.code != SIGKILL else "often memory ran out: choose a smaller size or fewer ranks a node"
        )
        return Diagnosis(f"{who} was killed by signal {outcome.code}", outcome.rank, advice)
    if outcome.status == "exited":
        return Diagnosis(
            f"{who} exited early with code {outcome.code}", outcome.rank, "see its log for what ended it, then rerun"
        )
    return Diagnosis(f"{who} raised {outcome.error}", outcome.rank, "repair what its log shows, then rerun")


def _without_cause(evidence: Evidence) -> Diagnosis:
    silent = [r for r in range(evidence.job.ranks) if r not in evidence.outcomes]
    unended = silent or [r for r, o in sorted(evidence.outcomes.items()) if o.status != "ok"]
    left = f"{ranks(unended) if unended else 'no rank'} left no result"
    if evidence.slurm is None:
        return Diagnosis(left, unended[0] if unended else None, "see the log, then rerun")
    if evidence.slurm.state == "UNKNOWN":
        return Diagnosis(
            f"SLURM job {evidence.job_id} is in neither the queue nor accounting, and {left}",
            None if silent else unended[0],
            "it does not count as done; rerun",
        )
    return Diagnosis(
        f"SLURM job {evidence.job_id} ended as {evidence.slurm.state}, and {left}",
        None if silent else unended[0],
        "see its log, then rerun",
    )


def disagreement(job: Job, outcomes: Mapping[int, Outcome]) -> str | None:
    """What ranks that all ended well do not agree on, or None: world size, configuration, nodes, devices."""
    for rank, outcome in sorted(outcomes.items()):
        if outcome.world_size != job.ranks:
            return f"rank {rank} saw a world size of {outcome.world_size}, intended {job.ranks}"
        if outcome.payload_sha256 != job.payload_sha256:
            return f"rank {rank} ran another configuration than the one submitted"
    seen: dict[tuple[str, str], int] = {}
    for rank, outcome in sorted(outcomes.items()):
        if outcome.device is None:
            continue
        other = seen.setdefault((outcome.host, outcome.device), rank)
        if other != rank:
            return f"ranks {other} and {rank} had the same device {outcome.device} on {outcome.host}"
    hosts = {(o.node, o.host) for o in outcomes.values()}
    if len({node for node, _ in hosts}) != len(hosts):
        return "ranks of one node name different hosts"
    return None
