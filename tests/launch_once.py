"""Launch one job from a process of its own, for tests that send signals to the launcher.

Usage: launch_once.py FOLDER NAME RANKS PAYLOAD MACHINE-JSON
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from trisect.config.machine import Machine
from trisect.errors import TrisectError
from trisect.launch.job import Job
from trisect.launch.run_job import run_job
from trisect.results.layout import RunLayout

if __name__ == "__main__":
    folder, name, ranks, payload, machine = sys.argv[1:]
    job = Job(name, os.environ.get("TARGET", "standins:act"), payload, int(ranks), 2)
    try:
        run_job(
            job, Machine.model_validate_json(machine), RunLayout(Path(folder)), lambda line: print(line, flush=True)
        )
    except TrisectError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
