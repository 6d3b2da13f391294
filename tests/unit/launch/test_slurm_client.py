"""What squeue and sacct print, read."""

from __future__ import annotations

import subprocess

import pytest

from trisect.launch import slurm_client
from trisect.launch.slurm_client import SlurmState, parse_sacct, parse_squeue


def squeue(state: str, reason: str, nodes: str, restarts: str) -> str:
    return f"{state:30}|{reason:100}|{nodes:1000}|{restarts:12}|\n"


def test_squeue() -> None:
    assert parse_squeue(squeue("PENDING", "Resources", "", "0")) == SlurmState("PENDING", "Resources", restarts=0)
    running = parse_squeue(squeue("RUNNING", "None", "node[1-2]", "1"))
    assert running == SlurmState("RUNNING", "", "node[1-2]", restarts=1)


def test_sacct() -> None:
    assert parse_sacct("COMPLETED|node3\n") == SlurmState("COMPLETED", nodes="node3")
    assert parse_sacct("CANCELLED by 0|None assigned\n") == SlurmState("CANCELLED", by="root")
    assert parse_sacct("CANCELLED by 987654|node1\n").by == "user 987654"
    assert parse_sacct("") == SlurmState("UNKNOWN")


@pytest.mark.parametrize(
    ("state", "active", "over"),
    [
        ("PENDING", True, False),
        ("RUNNING", True, False),
        ("COMPLETING", True, False),
        ("REQUEUED", True, False),
        ("SUSPENDED", True, False),
        ("COMPLETED", False, True),
        ("FAILED", False, True),
        ("TIMEOUT", False, True),
        ("OUT_OF_MEMORY", False, True),
        ("NODE_FAIL", False, True),
        ("PREEMPTED", False, True),
        ("CANCELLED", False, True),
        ("UNKNOWN", False, False),
    ],
)
def test_which_states_are_the_last(state: str, active: bool, over: bool) -> None:
    assert (SlurmState(state).active, SlurmState(state).over) == (active, over)


def test_reasons_that_do_not_pass() -> None:
    assert SlurmState("PENDING", "PartitionTimeLimit").hopeless
    assert SlurmState("PENDING", "launch_failed_requeued_held").hopeless
    assert not SlurmState("PENDING", "Resources").hopeless
    assert not SlurmState("RUNNING", "PartitionTimeLimit").hopeless


KNOWN = (0, squeue("RUNNING", "None", "node1", "0"), "")
CANCELLED = (0, squeue("CANCELLED", "None", "node1", "0"), "")
FORGOTTEN = (1, "", "slurm_load_jobs error: Invalid job id specified")
SILENT = (1, "", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)")


@pytest.mark.parametrize(
    ("controller", "accounting", "state"),
    [
        (KNOWN, (0, "", ""), SlurmState("RUNNING", nodes="node1", restarts=0)),
        (KNOWN, (1, "", "refused"), SlurmState("RUNNING", nodes="node1", restarts=0)),
        (CANCELLED, (0, "CANCELLED by 0|node1", ""), SlurmState("CANCELLED", nodes="node1", by="root", restarts=0)),
        (FORGOTTEN, (0, "COMPLETED|node1", ""), SlurmState("COMPLETED", nodes="node1")),
        (FORGOTTEN, (0, "RUNNING|node1", ""), SlurmState("UNKNOWN")),
        (FORGOTTEN, (1, "", "refused"), SlurmState("UNKNOWN")),
        (SILENT, (0, "FAILED|node1", ""), SlurmState("FAILED", nodes="node1")),
        (SILENT, (0, "RUNNING|node1", ""), None),
        (SILENT, (1, "", "refused"), None),
    ],
)
def test_the_controller_is_asked_first_and_accounting_second(
    monkeypatch: pytest.MonkeyPatch, controller: tuple, accounting: tuple, state: SlurmState | None
) -> None:
    answers = {"squeue": controller, "sacct": accounting}

    def answer(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, *answers[command[0]])

    monkeypatch.setattr(slurm_client, "_client", answer)
    assert slurm_client.state_of("17") == state
