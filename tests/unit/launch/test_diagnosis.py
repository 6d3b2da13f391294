"""From records and states, written by hand, to the sentence."""

from __future__ import annotations

import pytest

from trisect.config.machine import Machine
from trisect.launch.diagnosis import Diagnosis, Evidence, diagnose, disagreement
from trisect.launch.job import Job
from trisect.launch.outcome import Outcome, Status
from trisect.launch.slurm_client import SlurmState

JOB = Job("inference_2d gpus-4", "m:f", "{}", 4, 10)
MACHINE = Machine(launcher="slurm", device="cpu", backend="gloo", gpus_per_node=2)  # 300 s a collective, 30 min a job
GLOO_CLOSED = "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer"
GLOO_LATE = "RuntimeError: [../gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1000ms for recv operation"
NCCL_DIED = "DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2772, remote process exited or there was an error"


def outcome(rank: int, status: Status, error: str | None = None, code: int | None = None, at: float = 2.0) -> Outcome:
    return Outcome(
        rank=rank,
        world_size=4,
        local_rank=rank % 2,
        node=rank // 2,
        host=f"node{rank // 2 + 1}",
        device=str(rank % 2),
        payload_sha256=JOB.payload_sha256,
        supervisor_pid=100 + rank,
        pid=200 + rank,
        status=status,
        code=code,
        error=error,
        started_s=1.0,
        ended_s=None if status == "running" else at,
    )


def diagnosis_of(
    *outcomes: Outcome, slurm: SlurmState | None = None, free_bytes: int = 1 << 40, **more: object
) -> Diagnosis:
    known = {o.rank: o for o in outcomes}
    return diagnose(Evidence(JOB, known, MACHINE, free_bytes, slurm, "17", **more))  # type: ignore[arg-type]


@pytest.mark.parametrize("peers", [GLOO_CLOSED, NCCL_DIED])
@pytest.mark.parametrize(
    ("status", "error", "code", "said"),
    [
        ("raised", "ValueError: bad", 1, "rank 2 on node2 raised ValueError: bad"),
        ("killed", None, 9, "rank 2 on node2 was killed by signal 9"),
        ("exited", None, 3, "rank 2 on node2 exited early with code 3"),
    ],
)
def test_the_cause_comes_before_those_that_suffered(
    peers: str, status: Status, error: str | None, code: int, said: str
) -> None:
    """Also where a peer's clock says that it failed earlier."""
    suffering = [outcome(rank, "raised", peers, 1, at=1.5) for rank in (0, 1, 3)]
    found = diagnosis_of(*suffering, outcome(2, status, error, code, at=2.0))
    assert (found.sentence, found.rank) == (said, 2)


def test_of_two_causes_the_first() -> None:
    found = diagnosis_of(
        outcome(0, "raised", "ValueError: b", at=3.0),
        outcome(1, "raised", "ValueError: a", at=2.0),
        outcome(2, "stopped"),
        outcome(3, "stopped"),
    )
    assert found.sentence == "rank 1 on node1 raised ValueError: a"


def test_a_hang() -> None:
    late = [outcome(rank, "raised", GLOO_LATE, 1) for rank in (3, 0, 2)]
    found = diagnosis_of(*late, outcome(1, "stopped"))
    assert found.sentence == ("rank 1 on node1 did not join a collective within 300 s, for which ranks 0, 2, 3 waited")
    assert found.rank == 1
    assert "collective_timeout_s" in found.advice


def test_all_time_out() -> None:
    assert diagnosis_of(*[outcome(rank, "raised", GLOO_LATE, 1, at=2.0 + rank) for rank in range(4)]).rank == 0


def test_a_rank_that_went_with_its_supervisor() -> None:
    found = diagnosis_of(outcome(0, "stopped"), outcome(1, "stopped"), outcome(2, "running"), outcome(3, "stopped"))
    assert found.sentence == "rank 2 on node2 was killed together with its supervisor"


@pytest.mark.parametrize(
    ("state", "said", "advice"),
    [
        (SlurmState("TIMEOUT", nodes="node1"), "reached its time limit of 30 minutes on node1", "time_limit_minutes"),
        (SlurmState("OUT_OF_MEMORY", nodes="node1"), "ran out of memory on node1", "slurm.memory_gb_per_node"),
        (SlurmState("NODE_FAIL", nodes="node[1-2]"), "lost a node on node[1-2]", "exclude"),
        (SlurmState("PREEMPTED"), "was preempted by a job of higher priority", "partition or qos"),
        (SlurmState("CANCELLED", by="alice"), "was cancelled by alice", "rerun"),
        (SlurmState("CANCELLED"), "was cancelled by someone else", "rerun"),
        (SlurmState("BOOT_FAIL"), "could not boot its nodes", "partition"),
        (SlurmState("DEADLINE"), "passed its deadline", "deadline"),
        (SlurmState("PENDING", "PartitionNodeLimit"), "would never start, for the reason PartitionNodeLimit", "slurm"),
    ],
)
def test_what_slurm_did(state: SlurmState, said: str, advice: str) -> None:
    """It explains why ranks ended, whatever they say themselves."""
    ranks = [outcome(0, "running"), *(outcome(rank, "raised", GLOO_CLOSED, 1) for rank in (1, 2, 3))]
    found = diagnosis_of(*ranks, slurm=state)
    assert said in found.sentence
    assert "17" in found.sentence
    assert advice in found.advice


def test_failed_says_nothing_that_ranks_do_not_say_better() -> None:
    ranks = [outcome(0, "raised", "ValueError: bad"), *(outcome(rank, "stopped") for rank in (1, 2, 3))]
    assert diagnosis_of(*ranks, slurm=SlurmState("FAILED")).sentence == "rank 0 on node1 raised ValueError: bad"


def test_a_job_that_vanished_is_no_success() -> None:
    found = diagnosis_of(*(outcome(rank, "ok") for rank in range(3)), slurm=SlurmState("UNKNOWN"))
    assert found.sentence == "SLURM job 17 is in neither the queue nor accounting, and rank 3 left no result"


def test_completed_without_results_is_no_success() -> None:
    found = diagnosis_of(slurm=SlurmState("COMPLETED"))
    assert found.sentence == "SLURM job 17 ended as COMPLETED, and ranks 0 to 3 left no result"
    assert found.rank is None


def test_a_rank_that_was_asked_to_end_is_not_the_cause() -> None:
    asked = [outcome(rank, "killed", code=15, at=1.5) for rank in (0, 1)]
    assert diagnosis_of(*asked, outcome(2, "exited", code=3), outcome(3, "stopped")).rank == 2
    found = diagnosis_of(*asked, outcome(2, "running"), outcome(3, "stopped"))
    assert found.sentence == "rank 2 on node2 was killed together with its supervisor"
    assert diagnosis_of(*asked).sentence == "rank 0 on node1 was killed by signal 15"


@pytest.mark.parametrize("error", ["OSError: [Errno 28] No space left on device", "OSError: Disk quota exceeded: 'x'"])
def test_a_full_disk_that_a_rank_met(error: str) -> None:
    found = diagnosis_of(outcome(1, "raised", error), slurm=SlurmState("FAILED"))
    assert found.sentence == f"rank 1 on node1 could not write ({error}): the disk that holds the results is full"


def test_a_full_disk_on_which_nobody_could_say_anything() -> None:
    found = diagnosis_of(slurm=SlurmState("FAILED"), free_bytes=0)
    assert found.sentence == "the disk that holds the results is full"


def test_agreement() -> None:
    good = {rank: outcome(rank, "ok") for rank in range(4)}
    assert disagreement(JOB, good) is None

    def with_rank_1(**changes: object) -> str | None:
        return disagreement(JOB, good | {1: good[1].model_copy(update=changes)})

    assert with_rank_1(world_size=3) == "rank 1 saw a world size of 3, intended 4"
    assert with_rank_1(payload_sha256="0") == "rank 1 ran another configuration than the one submitted"
    assert with_rank_1(device="0") == "ranks 0 and 1 had the same device 0 on node1"
    assert with_rank_1(host="node9") == "ranks of one node name different hosts"
