"""SLURM's command-line clients: what is known about a job, and cancelling one.

submitit's own view rests on sacct alone, is up to ten minutes old, and knows neither why a job waits nor who
cancelled it. Here the controller is asked first, accounting second; either may be late, off or down.
"""

import os
import pwd
import subprocess
from dataclasses import dataclass, replace

from trisect.errors import TrisectError
from trisect.launch.environment import clean

ANSWER_S = 60.0

ACTIVE = frozenset(
    {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD"}
    | {"SPECIAL_EXIT", "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED"}
)
"""States after which something more comes."""

NEVER = frozenset(
    {"PartitionNodeLimit", "PartitionTimeLimit", "BadConstraints", "InvalidAccount", "InvalidQOS", "AccountNotAllowed"}
    | {"QOSNotAllowed", "AssocMaxNodePerJobLimit", "QOSMaxNodePerJobLimit", "QOSMaxWallDurationPerJobLimit"}
    | {"AssocMaxWallDurationPerJobLimit", "AssocMaxGRESPerJob", "QOSMaxGRESPerJob", "JobHeldAdmin"}
    | {"launch failed requeued held", "job requeued in held state"}
)
"""Reasons for which a job waits until someone changes it or the site: waiting longer does not help."""


@dataclass(frozen=True)
class SlurmState:
    """What SLURM says of a job."""

    state: str = "UNKNOWN"
    """As squeue or sacct names it; UNKNOWN where neither knows the job."""
    reason: str = ""
    """Why it waits."""
    nodes: str = ""
    """Node list, in SLURM's own notation."""
    by: str = ""
    """Who cancelled it."""
    restarts: int | None = None
    """How often it was requeued; None where the source does not say."""

    @property
    def active(self) -> bool:
        """Whether the job may still change by itself."""
        return self.state in ACTIVE

    @property
    def hopeless(self) -> bool:
        """Whether it waits for something that does not come by waiting."""
        return self.state == "PENDING" and (self.reason in NEVER or self.reason.replace("_", " ") in NEVER)

    @property
    def over(self) -> bool:
        """Whether the job has ended, one way or another."""
        return not self.active and self.state != "UNKNOWN"


def state_of(job_id: str) -> SlurmState | None:
    """The job's state, or None where SLURM gives no answer now (its controller restarts, say)."""
    columns = "State:30|,Reason:100|,NodeList:1000|,RestartCnt:12|"
    asked = _client("squeue", "--noheader", "--states=all", f"--jobs={job_id}", f"--Format={columns}")
    if asked.returncode == 0 and asked.stdout.strip():
        seen = parse_squeue(asked.stdout)
        return replace(seen, by=_accounted(job_id).by) if seen.state == "CANCELLED" else seen
    accounted = _accounted(job_id)
    if accounted.over:
        return accounted
    # What the controller does not know does not run, even where accounting has not heard of its end.
    forgotten = asked.returncode == 0 or "Invalid job id" in asked.stderr
    return SlurmState() if forgotten else None


def parse_squeue(line: str) -> SlurmState:
    """One line of State|Reason|NodeList|RestartCnt."""
    state, reason, nodes, restarts = (field.strip() for field in line.strip().splitlines()[0].split("|")[:4])
    return SlurmState(state, "" if reason == "None" else reason, _nodes(nodes), "", int(restarts or 0))


def parse_sacct(line: str) -> SlurmState:
    """One line of State|NodeList; the state may be "CANCELLED by 1000"."""
    if not line.strip():
        return SlurmState()
    state, nodes = line.strip().splitlines()[-1].split("|")[:2]
    word, _, uid = state.partition(" by ")
    return SlurmState(word.rstrip("+"), nodes=_nodes(nodes), by=_user(uid) if uid else "")


def _nodes(text: str) -> str:
    return "" if text in ("None assigned", "(null)") else text


def _user(uid: str) -> str:
    try:
        return pwd.getpwuid(int(uid)).pw_name
    except (KeyError, ValueError):
        return f"user {uid}"


def _accounted(job_id: str) -> SlurmState:
    columns = "--format=State,NodeList"
    asked = _client("sacct", "--noheader", "--parsable2", "--allocations", f"--jobs={job_id}", columns)
    return parse_sacct(asked.stdout) if asked.returncode == 0 else SlurmState()


def find(comment: str) -> str | None:
    """Id of this user's job in the queue that carries that comment."""
    asked = _client("squeue", "--noheader", "--states=all", "--me", "--format=%A|%k")
    if asked.returncode:
        raise TrisectError(f"SLURM does not answer ({_words(asked)}); rerun when it does")
    pairs = (line.split("|", 1) for line in asked.stdout.splitlines())
    return next((job_id for job_id, said in pairs if said == comment), None)


def cancel(job_id: str) -> None:
    """Ask SLURM to end the job; one that has ended is left as it is."""
    _client("scancel", job_id)


def _client(*command: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            env=clean(os.environ),
            capture_output=True,
            text=True,
            timeout=ANSWER_S,
            start_new_session=True,  # a Ctrl-C in the terminal is not for it
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"no answer within {ANSWER_S:.0f} s")
    except FileNotFoundError:
        raise TrisectError(
            f"{command[0]} is not installed here, but the machine file says launcher: slurm; run this on a login node"
        ) from None


def _words(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join((done.stderr or done.stdout).split())
