"""What lies between an iteration's end and the next one's start."""

from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from trisect.config.settings import Iterations
from trisect.worker.profiling import measure


class Alone:
    """As much of a context and a solver as measuring uses."""

    device = torch.device("cpu")

    def __init__(self, events: list[str]) -> None:
        self.events = events

    def iterate(self, section) -> None:
        self.events.append("begin")
        with section("denoiser"):
            torch.ones(8).sum()
        self.events.append("end")


def test_progress_is_told_before_the_barrier_and_in_every_iteration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the barrier the only rank that tells it would be late in the next section, and its peers would wait."""
    events: list[str] = []
    monkeypatch.setattr(dist, "barrier", lambda: events.append("barrier"))
    alone, trace = Alone(events), tmp_path / "traces" / "rank-0000.json.gz"
    found = measure(alone, alone, Iterations(warmup=1, measured=2, unprofiled=3), trace, events.append)  # type: ignore[arg-type]
    told = ["0/2", "0/2", "1/2", "2/2", "2/2", "2/2"]
    assert events == [event for state in told for event in ("begin", "end", state, "barrier")]
    assert (len(found.profiled_s), len(found.unprofiled_s)) == (2, 3)
    assert trace.exists()
