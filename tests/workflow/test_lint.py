"""`snakemake --lint` has one complaint, and only this one: no conda environment or container for each rule.

trisect is one Python package; what it needs, with versions and reasons, is in pyproject.toml, and a GPU
machine brings its own torch. A second statement of the same in a conda file would only drift.
"""

import re
import subprocess
import sys

from .conftest import REPOSITORY

EXPLAINED = {"Specify a conda environment or container for each rule."}


def test_snakemake_lint() -> None:
    command = [sys.executable, "-m", "snakemake", "--lint"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    complaints = re.findall(r"^ +\* (.+):$", done.stderr, re.MULTILINE)
    assert len(complaints) == done.stderr.count("    * ") > 0, "the format has changed: " + done.stderr
    assert set(complaints) <= EXPLAINED
