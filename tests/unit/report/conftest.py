"""Made-up sweeps, drawn and put on a page once."""

from __future__ import annotations

import fabricated
import pandas as pd
import pytest


@pytest.fixture(scope="session")
def cluster() -> pd.DataFrame:
    return fabricated.cluster_scaling()


@pytest.fixture(scope="session")
def laptop() -> pd.DataFrame:
    return fabricated.laptop_scaling()


@pytest.fixture(scope="session")
def drawings(laptop: pd.DataFrame) -> dict[str, str]:
    return fabricated.drawings(laptop, tables=fabricated.laptop_material(laptop).tables)
