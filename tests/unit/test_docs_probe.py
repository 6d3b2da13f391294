"""docs/probe.md names every column, key and limit that the code has."""

import re
from pathlib import Path

import pytest

from trisect.config.machine import ProbeSettings
from trisect.network.latency_bandwidth import LEAST_SHARE, LEAST_SIZES
from trisect.network.regimes import BOUND
from trisect.results.tables import ALL_REDUCE, FITS
from trisect.worker.exact_sums import longest_chain
from trisect.worker.probe_worker import FEWEST_REPETITIONS, WARMUP

TEXT = " ".join((Path(__file__).parents[2] / "docs" / "probe.md").read_text().split())
NAMES = set(re.findall(r"`(?:probe\.)?(\w+)`", TEXT))


@pytest.mark.parametrize("column", [*ALL_REDUCE, *(name for name in FITS if not name.endswith(("_lo", "_hi")))])
def test_every_column_is_explained(column: str) -> None:
    assert column in NAMES


@pytest.mark.parametrize("key", ProbeSettings.model_fields)
def test_every_key_is_named(key: str) -> None:
    assert key in NAMES


def test_limits_are_those_of_the_code() -> None:
    defaults = ProbeSettings()
    assert f"default {defaults.seconds:g} s" in TEXT
    assert (
        f"at most `probe.repetitions` ({defaults.repetitions}) of a size and cadence and at least {FEWEST_REPETITIONS}"
        in TEXT
    )
    assert f"{WARMUP} isolated all_reduces of each size" in TEXT
    assert f"16 at 64 GPUs, {longest_chain(3)} at 3, {longest_chain(100)} at 100" in TEXT
    assert longest_chain(64) == 16
    assert f"Fewer than {LEAST_SIZES} sizes" in TEXT
    assert f"less than {LEAST_SHARE:.0%} of the".replace("%", " %") in TEXT
    assert BOUND == 0.75
    assert "up to a third of the crossover is *latency-bound*: three quarters" in TEXT
