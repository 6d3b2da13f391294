"""Following a SLURM job until it is over."""

import math
import time

from trisect.launch import attempt_files, slurm_client
from trisect.launch.job import Attempt
from trisect.launch.outcome import Outcome
from trisect.launch.session import Launch
from trisect.launch.slurm_client import SlurmState
from trisect.launch.submission import Submission

FILES_LOOK_S = 1.0
"""How often the ranks' records are looked at; SLURM is asked less often the longer it takes."""
SLOWEST_ASK_S = 15.0
ACCOUNTING_S = 60.0
"""How long a job may be in neither queue nor accounting before it counts as vanished."""
NEVER_S = 10.0
"""How long a job may wait for a reason that does not pass."""
FILES_S = 30.0
"""How late a shared file system may show what a rank wrote before its job ended."""
FAILED_END_S = 60.0
"""How long SLURM may take to end a job of which a rank has failed."""


class Watch:
    """Follows one job until it is over."""

    def __init__(self, launch: Launch, submission: Submission) -> None:
        assert submission.job_id is not None
        self.launch = launch
        self.job_id = submission.job_id
        self.folder = submission.folder(launch.layout)
        self.state: SlurmState | None = SlurmState("PENDING")
        self.begun = time.monotonic()
        self.since: dict[str, float] = {}

    def until_over(self) -> Attempt:
        """The attempt in which every rank ended well.

        Raises:
            TrisectError: there is none.
            Interrupted: from Launch.wait.
        """
        next_ask = 0.0
        while True:
            if time.monotonic() >= next_ask:
                self.state = slurm_client.state_of(self.job_id)
                elapsed = time.monotonic() - self.begun
                next_ask = time.monotonic() + min(SLOWEST_ASK_S, max(FILES_LOOK_S, elapsed / 20))
            attempt = self._attempt()
            found = attempt_files.outcomes(self.launch.job, attempt)
            if self._is_over(attempt, found):
                if attempt_files.all_well(self.launch.job, found):
                    return attempt
                slurm = self.state or SlurmState()
                raise attempt_files.failure(self.launch, self.folder, found, slurm, self.job_id)
            self.launch.say(self._line(attempt))
            self.launch.wait(FILES_LOOK_S)

    def _attempt(self) -> Attempt:
        """The start that counts: the controller says which, else the newest that has left anything."""
        restarts = self.state.restarts if self.state is not None else None
        return self.folder.attempt(self.folder.latest if restarts is None else restarts)

    def _is_over(self, attempt: Attempt, found: dict[int, Outcome]) -> bool:
        """Whether nothing more is to be waited for."""
        well = attempt_files.all_well(self.launch.job, found)
        failed = attempt_files.failed(found)
        state = self.state or SlurmState()
        if state.over:
            # Success counts only once every rank's record is seen; a failure waits for more of them.
            late_s = FILES_S if state.state == "COMPLETED" and not failed else 2 * FILES_LOOK_S
            return well or self._for("ended", late_s)
        if well:
            # It may yet be requeued while it completes.
            return self._for("well", FAILED_END_S) or (self.state is not None and state.state == "UNKNOWN")
        if failed and state.state != "PENDING":
            return self._for("failed", FAILED_END_S)
        if self.state is not None and state.state == "UNKNOWN":
            return self._for("vanished", ACCOUNTING_S)
        if state.hopeless:
            return self._for("hopeless", NEVER_S)
        self.since.clear()
        return False

    def _for(self, what: str, seconds: float) -> bool:
        """Whether `what` has lasted that long."""
        return time.monotonic() - self.since.setdefault(what, time.monotonic()) >= seconds

    def _line(self, attempt: Attempt) -> str:
        job = f"job {self.job_id}"
        if self.state is None:
            return f"{job}: SLURM does not answer, waiting"
        if self.state.state == "PENDING":
            waited = time.monotonic() - self.begun
            return f"{job} pending{f' ({self.state.reason})' if self.state.reason else ''}, waiting {_coarse(waited)}"
        where = f" on {self.state.nodes}" if self.state.nodes else ""
        how_far = attempt_files.progress(self.launch.job, attempt)
        return f"{job} {self.state.state.lower()}{where}{f', {how_far}' if how_far else ''}"


def _coarse(seconds: float) -> str:
    """A waiting time in steps, so that a new line is worth reading: under 10 s, then 10, 20, 40, 80 s ..."""
    if seconds < 10:
        return "since just now"
    return f"for {10 * 2 ** int(math.log2(seconds / 10))} s"
