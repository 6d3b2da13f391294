"""Which algorithm is taken for a transfer whose run left no log."""

from pathlib import Path

import pytest
from fabricated import cluster_scaling

from trisect.config.loading import load_machine
from trisect.pipeline.rates import rates_of
from trisect.results.layout import Layout

CONFIG = Path(__file__).parents[3] / "config"


@pytest.mark.parametrize(
    ("machine", "readings"), [("laptop", {("ring", "ring")}), ("v100", {("unknown", "ring"), ("unknown", "tree")})]
)
def test_without_a_log_gloo_is_a_ring_and_nccl_unknown(
    tmp_path: Path, machine: str, readings: set[tuple[str, str]]
) -> None:
    scaling = cluster_scaling()
    scaling = scaling[scaling["experiment"] == "inference_2d"]
    table = rates_of(scaling, Layout(tmp_path), load_machine(machine, CONFIG))
    assert set(table[["algorithm", "reading"]].itertuples(index=False, name=None)) == readings
