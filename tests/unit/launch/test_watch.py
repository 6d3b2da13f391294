"""A job followed through states that a script plays, in no time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from pathlib import Path

import pytest

from trisect.config.machine import Machine
from trisect.errors import TrisectError
from trisect.launch import slurm, slurm_client, watch
from trisect.launch.job import Attempt, Job
from trisect.launch.outcome import Outcome, Status
from trisect.launch.session import Launch
from trisect.launch.slurm_client import SlurmState
from trisect.launch.submission import Submission
from trisect.launch.watch import Watch
from trisect.results.layout import RunLayout

JOB = Job("inference_2d gpus-2", "m:f", "{}", 2, 5)
PENDING = SlurmState("PENDING", "Resources", restarts=0)
RUNNING = SlurmState("RUNNING", "", "node1", restarts=0)
REQUEUED = SlurmState("PENDING", "BeginTime", restarts=1)
RUNNING_AGAIN = SlurmState("RUNNING", "", "node2", restarts=1)


class Clock:
    """Time that passes only while the launcher waits."""

    def __init__(self) -> None:
        self.now = 1000.0

    def wait(self, seconds: float) -> set[int]:
        self.now += seconds
        return set()


class Played:
    """A launch whose job goes through given states, the last of them for ever."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = Clock()
        machine = Machine(launcher="slurm", device="cpu", backend="gloo", gpus_per_node=2)
        self.said: list[str] = []
        self.layout = RunLayout(folder)
        self.layout.logs.mkdir()
        self.launch = Launch(JOB, machine, self.layout, self.said.append, clock, None)  # type: ignore[arg-type]
        self.submission = Submission(token="t", job_id="17", payload_sha256=JOB.payload_sha256, ranks=2)
        self.clock = clock
        monkeypatch.setattr(time, "monotonic", lambda: clock.now)
        self.monkeypatch = monkeypatch

    def attempt(self, restarts: int = 0) -> Attempt:
        return self.submission.folder(self.layout).attempt(restarts)

    def leave(self, status: Status, ranks: tuple[int, ...] = (0, 1), restarts: int = 0) -> None:
        attempt = self.attempt(restarts)
        attempt.folder.mkdir(parents=True, exist_ok=True)
        for rank in ranks:
            Outcome(
                rank=rank,
                world_size=2,
                local_rank=rank,
                node=0,
                host="node1",
                device=None,
                payload_sha256=JOB.payload_sha256,
                supervisor_pid=1,
                pid=2,
                status=status,
                error="ValueError: bad" if status == "raised" else None,
                started_s=1.0,
                ended_s=2.0,
            ).write(attempt.outcome(rank))

    def states(self, *states: SlurmState | Callable[[], SlurmState] | None) -> None:
        script: Iterator[SlurmState | Callable[[], SlurmState] | None] = chain(states[:-1], repeat(states[-1]))

        def next_state(job_id: str) -> SlurmState | None:
            state = next(script)
            return state() if callable(state) else state

        self.monkeypatch.setattr(slurm_client, "state_of", next_state)

    def follow(self) -> Attempt:
        return Watch(self.launch, self.submission).until_over()


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    return Played(tmp_path, monkeypatch)


def test_a_job_that_ends_well(played: Played) -> None:
    played.leave("ok")
    played.states(PENDING, RUNNING, SlurmState("COMPLETED", restarts=0))
    assert played.follow() == played.attempt()


def test_results_that_come_late_over_a_shared_disk(played: Played) -> None:
    def late() -> SlurmState:
        if played.clock.now > 1015:
            played.leave("ok")
        return SlurmState("COMPLETED", restarts=0)

    played.states(RUNNING, late)
    assert played.follow() == played.attempt()


def test_results_that_never_come(played: Played) -> None:
    played.states(RUNNING, SlurmState("COMPLETED", restarts=0))
    with pytest.raises(TrisectError, match=r"ended as COMPLETED, and ranks 0, 1 left no result"):
        played.follow()
    assert played.clock.now - 1000 > watch.FILES_S


def test_a_job_that_vanished(played: Played) -> None:
    played.leave("ok", ranks=(0,))
    played.states(RUNNING, SlurmState("UNKNOWN"))
    with pytest.raises(TrisectError, match=r"is in neither the queue nor accounting, and rank 1 left no result"):
        played.follow()
    assert played.clock.now - 1000 > watch.ACCOUNTING_S


def test_late_accounting_is_no_vanished_job(played: Played) -> None:
    played.leave("ok", ranks=(0,))

    def end() -> SlurmState:
        played.leave("ok")
        return SlurmState("COMPLETED")

    played.states(RUNNING, *[SlurmState("UNKNOWN")] * 5, end)
    assert played.follow() == played.attempt()


def test_without_accounting_the_ranks_decide(played: Played) -> None:
    played.leave("ok")
    played.states(SlurmState("UNKNOWN"))
    assert played.follow() == played.attempt()


def test_slurm_that_does_not_answer_is_waited_for(played: Played) -> None:
    played.states(RUNNING, *[None] * 50, SlurmState("TIMEOUT", nodes="node1", restarts=0))
    with pytest.raises(TrisectError, match="reached its time limit"):
        played.follow()
    assert any("does not answer" in line for line in played.said)


def test_what_a_start_before_the_requeue_left_does_not_count(played: Played) -> None:
    played.leave("raised")

    def again() -> SlurmState:
        played.leave("running", restarts=1)
        return RUNNING_AGAIN

    def end() -> SlurmState:
        played.leave("ok", restarts=1)
        return SlurmState("COMPLETED", restarts=1)

    played.states(REQUEUED, *[REQUEUED] * 100, again, RUNNING_AGAIN, end)
    assert played.follow() == played.attempt(1)


def test_a_failed_rank_whose_job_slurm_does_not_end(played: Played) -> None:
    played.leave("raised", ranks=(1,))
    played.states(RUNNING)
    with pytest.raises(TrisectError, match="rank 1 on node1 raised ValueError: bad"):
        played.follow()


def test_waiting_is_said_ever_less_often(played: Played) -> None:
    played.leave("ok")
    played.states(*[PENDING] * 40, SlurmState("COMPLETED", restarts=0))
    played.follow()
    waiting = [line for line in played.said if "pending (Resources)" in line]
    assert [line.rsplit(", ", 1)[1] for line in waiting[:4]] == [
        "waiting since just now",
        "waiting for 10 s",
        "waiting for 20 s",
        "waiting for 40 s",
    ]


def test_no_answer_about_an_earlier_job_is_no_reason_to_submit_another(played: Played) -> None:
    played.submission.write(played.layout.job)
    played.states(None)
    with pytest.raises(TrisectError, match="SLURM does not answer, and job 17 may still run; rerun later"):
        slurm.run_slurm(played.launch)
    assert played.layout.job.exists()
