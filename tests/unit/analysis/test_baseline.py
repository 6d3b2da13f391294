"""Relations to the smallest count."""

import pandas as pd
import pytest
from known import job_of, trace_of

from trisect.analysis.baseline import scaling, useful_share
from trisect.analysis.decomposition import decompose
from trisect.errors import TrisectError
from trisect.results.tables import DECOMPOSITION, RELATIVE, RUN_COLUMNS, RUN_DECOMPOSITION, SCALING, with_bounds


def run(*arrivals_ms, **job):
    result = decompose(trace_of(job_of(*arrivals_ms, **job)))
    return result.table, result.iterations


@pytest.fixture(name="sweep", scope="module")
def _sweep():
    one = run((10,), (14,), transfer_ms=0.001)
    two = run((5, 7), (6, 8), transfer_ms=1)
    four = run((3, 3, 4, 3), (3, 5, 3, 3), transfer_ms=2)
    return scaling({4: four, 1: one, 2: two})


def test_columns_and_order(sweep):
    assert list(sweep.columns) == [*DECOMPOSITION, "baseline_gpus", *with_bounds(RELATIVE)]
    assert list(sweep["gpus"]) == [1, 1, 2, 2, 4, 4]
    assert (sweep["baseline_gpus"] == 1).all()


def test_by_hand(sweep):
    two = sweep[(sweep["gpus"] == 2) & (sweep["section"] == "s")].iloc[0]
    assert two["cost"] == pytest.approx(2 * 8.5 / 12.001)
    assert two["speedup"] == pytest.approx(12.001 / 8.5)
    assert two["comp_scaling"] == pytest.approx(12 / (2 * 6.5))
    assert two["global_efficiency"] == pytest.approx(6.5 / 8.5 * 12 / 13)
    assert two["cost_lo"] < two["cost"] < two["cost_hi"]


def test_baseline_is_one_by_definition_without_bounds(sweep):
    base = sweep[sweep["gpus"] == 1]
    defined = ["speedup", "cost", "comp_scaling"]
    assert (base[defined] == 1).all(axis=None)
    assert base[[f"{name}{end}" for name in defined for end in ("_lo", "_hi")]].isna().all(axis=None)
    assert (base["global_efficiency"] == base["parallel_efficiency"]).all()


def test_one_iteration_in_either_run_gives_no_bounds():
    found = scaling({1: run((10,)), 2: run((5, 7), (6, 8))})
    assert found[["cost_lo", "cost_hi", "global_efficiency_lo"]].isna().all(axis=None)
    assert found["cost"].notna().all()


def test_section_that_the_baseline_lacks_has_no_relation():
    found = scaling({1: run((10,), (10,), name="t"), 2: run((5, 7), (6, 8))}).set_index(["gpus", "section"])
    assert found.loc[(2, "s"), list(RELATIVE)].isna().all()
    assert found.loc[(2, "total"), [name for name in RELATIVE if name != "untiled_efficiency"]].notna().all()


def test_redundant_work_of_tiles_is_counted_as_lost():
    """Of 12 ms of compute, 4 ms are without tiles and 8 ms over tiles of twice the image's area."""
    base, two = run((4,), (4,), name="gradient"), run((2, 3), (2, 3), name="gradient")
    tiled = run((8,), (8,), name="denoiser")
    table = pd.concat([part[0][part[0]["section"] != "total"] for part in (base, tiled)]).assign(tile_work=[1.0, 2.0])
    assert useful_share(table, "gradient") == 1
    assert useful_share(table, "denoiser") == 0.5
    assert useful_share(table, "total") == pytest.approx((4 + 8 / 2) / 12, rel=1e-3)
    found = scaling({n: (part[0].assign(tile_work=2.0), part[1]) for n, part in ((1, base), (2, two))})
    assert (found["untiled_efficiency"] / found["global_efficiency"]).tolist() == pytest.approx([0.5] * len(found))
    assert scaling({1: base})["untiled_efficiency"].isna().all()


def test_the_workflows_columns_pass_through():
    table, iterations = run((10,), (14,))
    table = table.assign(experiment="e", **dict.fromkeys(RUN_COLUMNS, 0))[list(RUN_DECOMPOSITION)]
    assert list(scaling({1: (table, iterations)}).columns) == list(SCALING)


def test_misfiled_and_missing_runs_are_refused():
    with pytest.raises(TrisectError, match="for 8 GPUs is of"):
        scaling({8: run((5, 7), (6, 8))})
    with pytest.raises(TrisectError, match="at least one"):
        scaling({})
