"""Imports run downward only, and each outside library has one room."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "trisect"

FLOORS = [
    {"errors", "host", "layout", "lock", "record", "schemas", "settings", "studied", "tables", "workload"},
    {"config", "trace", "analysis"},
    {"comm", "report", "bench"},
    {"files", "launch", "outlook", "prediction"},
    {"cli"},
]
ROOMS = {
    "torch": {"bench"},
    "deepinv": {"bench"},
    "submitit": {"launch"},
    "msgspec": {"trace"},
    "seaborn": {"report"},
    "matplotlib": {"report"},
    "snakemake": set(),
}


def imports(path: Path) -> set[str]:
    """Modules that a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


FILES = sorted(SOURCE.rglob("*.py"))


def floor(name: str) -> int | None:
    return next((level for level, rooms in enumerate(FLOORS) if name in rooms), None)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_run_downward(path: Path) -> None:
    mine = floor(room(path))
    if room(path) == "__init__":
        return
    assert mine is not None, f"{room(path)} stands on no floor; add it to FLOORS"
    for module in imports(path):
        if module.startswith("trisect."):
            theirs = floor(module.split(".")[1])
            assert theirs is None or theirs <= mine, f"imports {module}, which is above it"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_each_library_has_its_room(path: Path) -> None:
    used = {module.split(".")[0] for module in imports(path)}
    strangers = {library for library in used & set(ROOMS) if room(path) not in ROOMS[library]}
    assert not strangers
