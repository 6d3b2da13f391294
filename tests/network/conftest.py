"""One launch for each number of hosts, whatever tests ask of it; and the figures of all tests at the end."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache

import pytest

from trisect.analysis.decomposition import Decomposition
from trisect.errors import TrisectError
from trisect.results.layout import Layout

from . import lab
from .network import why_not

FIGURES = pytest.StashKey[list[str]]()

Launched = Callable[[int], Layout]
Found = Callable[[lab.Case, int], Decomposition]
Figure = Callable[[str], None]


@pytest.fixture(scope="session")
def possible() -> None:
    """Whether such networks can be built here."""
    reason = why_not()
    if reason and os.environ.get("CI"):
        pytest.fail(f"these tests must run here, but: {reason}")
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def launched(possible: None, tmp_path_factory: pytest.TempPathFactory) -> Launched:
    """The results of all that runs on so many hosts."""

    @cache
    def at(hosts: int) -> Layout | TrisectError:
        try:
            return lab.launched(hosts, tmp_path_factory.mktemp(f"hosts-{hosts}"))
        except TrisectError as error:
            return error  # kept like a result: no test launches again what has failed

    def found(hosts: int) -> Layout:
        result = at(hosts)
        if isinstance(result, TrisectError):
            pytest.fail(str(result))
        return result

    return found


@pytest.fixture(scope="session")
def found(launched: Launched) -> Found:
    """The decomposition of one case on so many hosts."""
    return cache(lambda case, hosts: lab.decomposed(launched(hosts), case, hosts))


@pytest.fixture
def figure(pytestconfig: pytest.Config) -> Figure:
    """Takes a line for the summary."""
    return pytestconfig.stash.setdefault(FIGURES, []).append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in config.stash.get(FIGURES, []):
        terminalreporter.write_line(line)
