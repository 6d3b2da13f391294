"""A copy of the workflow in an empty folder, at a size that takes seconds."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).parents[2]
TINY_2D = {"image": [1, 48, 48], "patch": 16, "overlap": 8, "denoiser_channels": [2, 2, 4, 4], "denoiser_blocks": 1}
TINY_3D = TINY_2D | {"image": [1, 32, 32, 32]}


@dataclass(frozen=True)
class Project:
    """A folder with the workflow and its own configuration."""

    folder: Path

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "snakemake", "--nocolor", *arguments]

    def snakemake(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Snakemake to its end, standard error and output together."""
        return subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )

    def edit(self, file: str, change: Callable[[dict], None]) -> None:
        """Change a configuration file."""
        path = self.folder / "config" / file
        content = yaml.safe_load(path.read_text())
        change(content)
        path.write_text(yaml.safe_dump(content))

    @property
    def launched(self) -> list[Path]:
        """Runs of which anything was started."""
        return sorted(self.folder.glob("results/*/gpus-*"))


def make_project(folder: Path) -> Project:
    """The shipped workflow at size `tiny`, counts 1 and 2."""
    for name in ("config", "workflow", "profiles"):
        shutil.copytree(REPOSITORY / name, folder / name)
    shutil.copy(REPOSITORY / "Snakefile", folder)
    project = Project(folder)
    project.edit("config.yaml", lambda c: c.update(size="tiny", gpus=[1, 2], iterations=TINY_ITERATIONS))
    for path in (folder / "config" / "experiments").glob("*.yaml"):
        size = TINY_3D if path.stem.endswith("3d") else TINY_2D
        project.edit(f"experiments/{path.name}", lambda c, size=size: c["sizes"].update(tiny=size))
    return project


TINY_ITERATIONS = {"warmup": 1, "measured": 6, "unprofiled": 2}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A fresh project."""
    return make_project(tmp_path)


@pytest.fixture(scope="session")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose sweep has been run; tests must not change its results."""
    swept = make_project(tmp_path_factory.mktemp("a folder with spaces"))
    done = swept.snakemake("sweep")
    assert done.returncode == 0, done.stdout[-5000:]
    return swept
