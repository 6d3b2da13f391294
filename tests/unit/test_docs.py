"""What the pages say of the project is so: links lead somewhere, layers and columns are those of the code."""

import re
import tomllib
from pathlib import Path

import pytest

from trisect.cli import COMMANDS
from trisect.config.machine import Machine, Slurm
from trisect.report.catalogue import CATALOGUE
from trisect.results.tables import (
    COMPARISON,
    ITERATIONS,
    PAIRED_COLLECTIVES,
    PREDICTION,
    RANKS,
    RATES,
    RUN_DECOMPOSITION,
    SCALING,
)

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    (ROOT / "docs").glob("*.md")
)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to a page's headings."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> list[str]:
    return [link for link in LINK.findall(FENCED.sub("", page.read_text())) if "://" not in link]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_anchors_exist(page: Path) -> None:
    broken = []
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_pages_have_links_to_check() -> None:
    assert sum(len(links(page)) for page in PAGES) > 50


def test_every_page_is_in_the_readme() -> None:
    named = set(links(ROOT / "README.md"))
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f"docs/{page.name}" not in named] == []


def test_contributing_has_the_layers_of_import_linter() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (one["layers"] for one in contracts if one["type"] == "layers" and one["containers"] == ["trisect"])
    section = (ROOT / "CONTRIBUTING.md").read_text().split("## Layers\n")[1].split("\n## ")[0]
    shown = [re.findall(r"`(\w+)`", row.split("|")[1]) for row in section.splitlines() if row.startswith("| `")]
    assert shown == [layer.split(" | ") for layer in layers]


@pytest.mark.parametrize(
    ("page", "table"),
    [
        ("metrics", RUN_DECOMPOSITION),
        ("metrics", SCALING),
        ("metrics", PAIRED_COLLECTIVES),
        ("metrics", ITERATIONS),
        ("metrics", RANKS),
        ("model", RATES),
        ("model", PREDICTION),
        ("comparing", COMPARISON),
    ],
)
def test_every_column_is_explained(page: str, table: dict[str, str]) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    columns = [name for name in table if not name.endswith(("_lo", "_hi"))]
    of_both = {name: re.sub(r"^(measured|error)_.*", r"\1_...", name) for name in columns}
    assert [name for name, shown in of_both.items() if f"`{shown}`" not in text] == []


def test_every_figure_has_its_question() -> None:
    text = (ROOT / "docs" / "report.md").read_text().split("## Figures\n")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == list(CATALOGUE)


def test_every_key_of_a_machine_is_explained() -> None:
    text = (ROOT / "docs" / "cluster.md").read_text()
    keys = [*(name for name in Machine.model_fields if name != "slurm"), *Slurm.model_fields]
    assert [name for name in keys if f"`{name}`" not in text and f"`slurm.{name}`" not in text] == []


def test_every_command_is_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text()
    assert [name for name in COMMANDS if f"trisect {name} " not in text and f"make {name}" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_and_files_that_are_named_exist(page: Path) -> None:
    """Paths with a folder in front; mine.yaml is the reader's own."""
    named = re.findall(r"`([\w./]+/\w[\w.]*\.(?:py|yaml))`", page.read_text())
    missing = [path for path in named if not any((folder / path).exists() for folder in (ROOT, ROOT / "src/trisect"))]
    assert [path for path in missing if not path.endswith("mine.yaml")] == []
