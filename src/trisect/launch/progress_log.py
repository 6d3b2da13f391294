"""Where a launch that Snakemake runs reports its progress."""

import sys
from pathlib import Path

from trisect.launch.session import Report


def progress_log(log: Path) -> Report:
    """A function that prints each line for whoever watches Snakemake, and appends it to `log`, which begins empty."""
    log.write_text("")

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)
        with log.open("a") as stream:
            print(line, file=stream)

    return say
