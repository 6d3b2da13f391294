"""One process at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trisect.errors import TrisectError
from trisect.host import locked

HOLDER = (
    "import sys, pathlib; from trisect.host import hold;"
    "hold(pathlib.Path(sys.argv[1]), 'x'); print('held', flush=True); sys.stdin.read()"
)


def test_a_lock_is_refused_with_its_holder_and_free_when_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    said = rf"another snakemake is already at work \(process {holder.pid} on {os.uname().nodename}\); wait for it"
    with pytest.raises(TrisectError, match=said), locked(path, "another snakemake"):
        pass
    holder.kill()
    holder.communicate()
    with locked(path, "another snakemake"):
        assert path.read_text() == f"process {os.getpid()} on {os.uname().nodename}"


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TrisectError, match="cannot be written"), locked(tmp_path / "file" / "lock", "x"):
        pass
