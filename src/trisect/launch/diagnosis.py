"""From what is known of a failed job to its cause, worded by diagnoses.yaml: pure functions, no clock, no scheduler."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from trisect.config.machine import Machine
from trisect.host import shipped_yaml
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
    machine: Machine
    free_bytes: int
    """On the disk that holds the results."""
    slurm: SlurmState | None = None
    job_id: str = ""
    lost: frozenset[int] = frozenset()
    """Ranks whose supervisor was gone without having written an end."""


_WORDS: dict[str, dict[str, str]] = shipped_yaml("trisect.launch", "diagnoses.yaml")


@dataclass(frozen=True)
class Diagnosis:
    """What ended a job."""

    kind: str
    """Key of diagnoses.yaml."""
    rank: int | None
    """Whose log shows it; None where the log of the job as a whole says more than any rank's."""
    values: Mapping[str, object]

    @property
    def sentence(self) -> str:
        """What happened, as the start of a sentence."""
        return _WORDS[self.kind]["what"].format_map(self.values)

    @property
    def advice(self) -> str:
        """What to change."""
        return _WORDS[self.kind]["advice"].format_map(self.values)


def diagnose(evidence: Evidence) -> Diagnosis:
    """The cause of a failed job: what SLURM did to it if that explains it, else the rank that failed first."""
    return _full_disk(evidence) or _by_slurm(evidence) or _by_rank(evidence) or _without_cause(evidence)


def _full_disk(evidence: Evidence) -> Diagnosis | None:
    hit = [o for o in evidence.outcomes.values() if o.error and _FULL.search(o.error)]
    if not hit and evidence.free_bytes >= FULL_BYTES:
        return None
    who = f"rank {hit[0].rank} on {hit[0].host} could not write ({hit[0].error}): " if hit else ""
    return Diagnosis("full_disk", hit[0].rank if hit else None, {"who": who})


def _by_slurm(evidence: Evidence) -> Diagnosis | None:
    slurm = evidence.slurm
    if slurm is None:
        return None
    foreseen = evidence.job.limit_minutes
    values = {
        "job_id": evidence.job_id,
        "reason": slurm.reason,
        "where": f" on {slurm.nodes}" if slurm.nodes else "",
        "limit": foreseen or evidence.machine.slurm.time_limit_minutes,
        "key": "slurm.extra.time, in minutes: the model foresaw less," if foreseen else "slurm.time_limit_minutes",
        "memory": evidence.machine.slurm.memory_gb_per_node or "the site default",
        "by": slurm.by or "someone else",
    }
    if slurm.hopeless:
        return Diagnosis("hopeless", None, values)
    return Diagnosis(slurm.state, _still_running(evidence), values) if slurm.state in _WORDS else None


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
        return Diagnosis("lost", min(lost), {"rank": min(lost), "on": _on(evidence, min(lost))})
    raised = [o for o in ended if o.status == "raised"]
    silent = [r for r in range(evidence.job.ranks) if r not in {o.rank for o in raised}]
    if raised and silent and all(_TIMED_OUT.search(o.error or "") for o in raised):
        waited = ranks(sorted(o.rank for o in raised))
        values = {"silent": ranks(silent), "waited": waited, "timeout_s": evidence.machine.collective_timeout_s}
        return Diagnosis("hang", silent[0], values | {"on": _on(evidence, silent[0])})
    suffered = raised or [o for o in ended if o.status == "killed"]
    return _one(suffered[0]) if suffered else None


def _on(evidence: Evidence, rank: int) -> str:
    known = evidence.outcomes.get(rank)
    return f" on {known.host}" if known else ""


def _caused(outcome: Outcome) -> bool:
    """Whether the rank failed by itself: not because of a peer, and not because it was asked to end."""
    if outcome.status == "killed":
        return outcome.code != SIGTERM
    by_peer = outcome.status == "raised" and _OF_PEERS.search(outcome.error or "")
    return outcome.status in ("refused", "exited", "raised") and not by_peer


def _unheard_after_a_stop(evidence: Evidence) -> frozenset[int]:
    """Ranks that the record still calls running, although their peers were told to stop and said so."""
    if not any(o.status == "stopped" for o in evidence.outcomes.values()):
        return frozenset()
    return frozenset(rank for rank, o in evidence.outcomes.items() if o.status == "running")


def _one(outcome: Outcome) -> Diagnosis:
    kind = "killed_by_kernel" if outcome.status == "killed" and outcome.code == SIGKILL else outcome.status
    values = {"rank": outcome.rank, "on": f" on {outcome.host}", "code": outcome.code, "error": outcome.error}
    return Diagnosis(kind, outcome.rank, values)


def _without_cause(evidence: Evidence) -> Diagnosis:
    silent = [r for r in range(evidence.job.ranks) if r not in evidence.outcomes]
    unended = silent or [r for r, o in sorted(evidence.outcomes.items()) if o.status != "ok"]
    values: dict[str, object] = {"unended": ranks(unended) if unended else "no rank", "job_id": evidence.job_id}
    if evidence.slurm is None:
        return Diagnosis("no_result", unended[0] if unended else None, values)
    kind = "vanished" if evidence.slurm.state == "UNKNOWN" else "ended"
    return Diagnosis(kind, None if silent else unended[0], values | {"state": evidence.slurm.state})


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
