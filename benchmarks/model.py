"""How long `trisect predict` and `trisect study` take, started as a person starts them: wall and processor seconds.

python benchmarks/model.py [--rounds 5]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TRISECT = Path(sys.executable).with_name("trisect")


def timed(*arguments: str) -> tuple[float, float]:
    """Wall and processor seconds of one call."""
    before, begun = os.times(), time.perf_counter()
    subprocess.run([TRISECT, *arguments], check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - begun, os.times()
    return wall, after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    """Print one line a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="calls of predict, of which the median is shown")
    rounds = parser.parse_args().rounds
    for experiment in ("inference_2d", "training_2d"):
        calls = [timed("predict", "--machine", "v100", "--experiment", experiment) for _ in range(rounds)]
        wall, processor = (statistics.median(values) for values in zip(*calls, strict=True))
        print(f"trisect predict {experiment}: {wall:.2f} s, {processor:.2f} s of processor (median of {rounds})")
    with tempfile.TemporaryDirectory() as out:
        wall, processor = timed("study", "--out", out)
    print(f"trisect study, four experiments to 64 ranks: {wall:.0f} s, {processor:.0f} s of processor")


if __name__ == "__main__":
    main()
