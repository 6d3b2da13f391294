"""Launch one job from a process of its own, for tests that send signals to the launcher.

Usage: launch_once.py FOLDER NAME RANKS PAYLOAD MACHINE-JSON
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from trisect import launch
from trisect.errors import TrisectError
from trisect.layout import RunLayout
from trisect.settings import Machine

if __name__ == "__main__":
    folder, name, ranks, payload, machine = sys.argv[1:]
    job = launch.Job(name, os.environ.get("TARGET", "standins:act"), payload, int(ranks), 2)
    try:
        launch.run(
            job, Machine.model_validate_json(machine), RunLayout(Path(folder)), lambda line: print(line, flush=True)
        )
    except TrisectError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
