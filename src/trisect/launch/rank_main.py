"""A rank's own process. Run by path, so that the measured process holds nothing of the launcher.

Usage: rank_main.py PID-OF-SUPERVISOR REPORT-FD TARGET PAYLOAD-FILE FOLDER
"""

import ctypes
import importlib
import os
import signal
import sys
import traceback
from pathlib import Path

PR_SET_PDEATHSIG = 1  # linux/prctl.h

RETURNED = "returned"
RAISED = "raised "


def main(supervisor: str, report_fd: str, target: str, payload: str, folder: str) -> int:
    """Call the target; tell the supervisor through the pipe how that went."""
    _end_with(int(supervisor))
    module, _, name = target.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
        function(Path(payload).read_text(), Path(folder))
    except Exception as error:
        # Told before anything is torn down: peers notice only when our connections close.
        os.write(int(report_fd), (RAISED + _one_line(error)).encode())
        traceback.print_exc()
        return 1
    os.write(int(report_fd), RETURNED.encode())
    return 0


def _end_with(supervisor: int) -> None:
    """Be killed by the kernel when the supervisor ends, however it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor:
        os._exit(1)


def _one_line(error: Exception) -> str:
    """The exception as one line; of trisect's own errors only the message, which is meant to be read."""
    said = " ".join(str(error).split())[:1000]
    return said if type(error).__name__ == "TrisectError" else f"{type(error).__name__}: {said}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
