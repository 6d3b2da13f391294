"""From runs of a known model to prediction.csv and its words; where the rates come from; what is refused."""

import pandas as pd
import pytest
from filled import filled
from modelled import ALL_REDUCE_COST, CONFIG, WORK, write_runs

from trisect.config.loading import load
from trisect.errors import TrisectError
from trisect.model.allreduce_cost import of_links
from trisect.model.predict import Model, outline
from trisect.pipeline.prediction import write_prediction
from trisect.results.layout import Layout
from trisect.results.tables import FITS, PREDICTION

JITTER = 0.02
SETTINGS = {"experiments": ["inference_2d"], "gpus": [1, 2, 4, 8]}


def sweep_of(**changes):
    return load(SETTINGS | changes, CONFIG)


def made(sweep, all_reduce=ALL_REDUCE_COST, jitter=JITTER):
    problem = outline("inference_2d", sweep.experiments["inference_2d"], sweep.settings.size)
    problem.sections.update(WORK)
    return Model(problem, all_reduce, dict.fromkeys(WORK, jitter))


@pytest.fixture(name="layout")
def _layout(tmp_path):
    """Runs at 1, 2, 4 and 8, of which 4 and 8 share cores."""
    layout = Layout(tmp_path / "results")
    write_runs(made(sweep_of()), layout, [1, 2, 4, 8], shared=[4, 8])
    return layout


def test_two_smallest_are_fitted_and_the_others_held_out(layout):
    words = "\n".join(write_prediction(sweep_of(), layout, "inference_2d"))
    table = pd.read_csv(layout.prediction("inference_2d"))
    assert layout.prediction_words("inference_2d").read_text() == words + "\n"
    assert tuple(table.columns) == tuple(PREDICTION)
    assert sorted(table["gpus"].unique()) == [2**k for k in range(11)]
    assert set(table["section"]) == {"gradient", "denoiser", "total"}
    total = table[table["section"] == "total"].set_index("gpus")
    assert total["role"].to_list() == ["fitted"] * 2 + ["held out"] * 2 + ["predicted"] * 7
    assert total["oversubscribed"].to_list() == [False, False, True, True] + [False] * 7
    held_out = total.loc[[4, 8]]
    assert held_out["error_span_s"].abs().max() < JITTER
    assert held_out["error_transfer_s"].abs().max() < 1e-3
    assert held_out["error_cost"].abs().max() < JITTER
    assert total.loc[16:, [name for name in table if name.startswith(("measured", "error"))]].isna().all(axis=None)
    assert "modelled from what was measured at 1 and 2" in words
    assert "Held out at 8, where ranks share cores, which the model does not know: span" in words
    assert "Rates are those that the transfers at the fitted counts imply" in words
    assert "Fit at 2 ranks: 200 µs latency, 500 MB/s (ring)." in words
    assert "Counts above 36 leave some without a tile" in words


def test_words_are_those_of_the_table(layout):
    words = write_prediction(sweep_of(), layout, "inference_2d")
    total = pd.read_csv(layout.prediction("inference_2d")).query("section == 'total'").set_index("gpus")
    for level, percent in ((0.8, "80 %"), (0.5, "50 %")):
        largest = total.index[total["parallel_efficiency"] >= level].max()
        assert f"Parallel efficiency is at least {percent} up to {largest} ranks." in words
    over = total.index[total["transfer_s"] >= total["compute_max_s"]].min()
    assert f"Transfer takes at least as long as the slowest rank's compute from {over} ranks on." in words
    said = next(line for line in words if line.startswith("Held out at 4"))
    assert f"load balance {100 * total.loc[4, 'error_load_balance']:+.1f} %" in said
    assert any(line.lstrip().startswith("operators cut 8 times finer") for line in words)


def test_counts_that_are_asked_for(layout):
    words = write_prediction(sweep_of(predict={"fit": [8, 4]}), layout, "inference_2d")
    table = pd.read_csv(layout.prediction("inference_2d")).drop_duplicates("gpus").set_index("gpus")
    assert table["role"].to_list()[:4] == ["held out", "held out", "fitted", "fitted"]
    assert any("Fitted at 4 and 8, where ranks share cores" in line for line in words)
    every = write_prediction(sweep_of(predict={"fit": [1, 2, 4, 8]}), layout, "inference_2d")
    assert any(line.startswith("No count was held out") for line in every)


def test_a_probe_gives_the_rates_where_it_ran(layout):
    layout.fits.parent.mkdir()
    fit = {"gpus": 2, "nodes": 1, "algorithm": "chosen", "ran": "ring", "reading": "ring", "gb_per_s": 2}
    filled([fit], FITS).to_csv(layout.fits, index=False)
    words = write_prediction(sweep_of(), layout, "inference_2d")
    total = pd.read_csv(layout.prediction("inference_2d")).query("section == 'gradient'").set_index("gpus")
    assert total.loc[8, "transfer_s"] == pytest.approx(2 * 7 / 8 * (4 * 3 * 192 * 192 + 8) / 2e9)
    assert any("Rates are the probe's, at 2" in line for line in words)


def test_links_of_the_machine_and_its_jitter_come_first(tmp_path):
    cluster = sweep_of(machine="v100", size="published", gpus=[4, 8, 64])
    layout = Layout(tmp_path)
    write_runs(made(cluster, of_links(cluster.machine.links, 4), 0.03), layout, [4, 8, 64], logs=True)
    words = write_prediction(cluster, layout, "inference_2d")
    table = pd.read_csv(layout.prediction("inference_2d")).query("section == 'total'").set_index("gpus")
    assert table.loc[64, "role"] == "held out"
    assert table.loc[64, "error_transfer_s"] == pytest.approx(0, abs=1e-6)
    assert any("Rates and jitter (3.0 %) are those of config/machines/v100.yaml: what a pub" in line for line in words)
    assert any("Counts above 64 are more than this machine has" in line for line in words)
    assert any("at least 50 % up to" in line and line.endswith("GPUs.") for line in words)


def test_without_links_the_log_names_the_algorithm_and_crossing_nodes_is_a_caveat(tmp_path):
    cluster = sweep_of(machine="v100", size="published", gpus=[2, 4, 8])
    all_reduce = of_links(cluster.machine.links, 4)
    cluster = cluster.model_copy(update={"machine": cluster.machine.model_copy(update={"links": None})})
    layout = Layout(tmp_path)
    write_runs(made(cluster, all_reduce), layout, [2, 4, 8], logs=True)
    words = write_prediction(cluster, layout, "inference_2d")
    assert any("No fitted count spans nodes" in line for line in words)
    across = sweep_of(machine="v100", size="published", gpus=[2, 4, 8], predict={"fit": [8]})
    across = across.model_copy(update={"machine": cluster.machine})
    words = write_prediction(across, layout, "inference_2d")
    assert any("Fit at 8 GPUs: " in line and line.endswith("17.0 GB/s (tree).") for line in words)
    assert not any("No fitted count spans nodes" in line or "No NCCL log" in line for line in words)
    for log in layout.run("inference_2d", 8).nccl.iterdir():
        log.unlink()
    words = write_prediction(across, layout, "inference_2d")
    assert any("No NCCL log says which algorithm ran at 8: a ring is assumed." in line for line in words)


def refused(sweep, layout):
    with pytest.raises(TrisectError) as stopped:
        write_prediction(sweep, layout, "inference_2d")
    assert not layout.prediction("inference_2d").exists()
    assert not layout.prediction_words("inference_2d").exists()
    assert "\n" not in str(stopped.value)
    return str(stopped.value)


def test_an_experiment_without_measurement(tmp_path):
    assert "gpus-1/decomposition.csv: no such file; make it: snakemake" in refused(sweep_of(), Layout(tmp_path))


def test_one_gpu_alone(layout):
    assert "nothing of known size is transferred at 1 GPU" in refused(sweep_of(gpus=[1]), layout)


def test_a_run_of_another_count(layout):
    layout.run("inference_2d", 2).decomposition.write_text(layout.run("inference_2d", 4).decomposition.read_text())
    assert "gpus-2/decomposition.csv: not of 2 ranks; make it again: snakemake" in refused(sweep_of(), layout)


def test_a_damaged_decomposition(layout):
    layout.run("inference_2d", 2).ranks.write_bytes(b"PAR1 no longer")
    assert "gpus-2/ranks.parquet: damaged, not readable as a table (" in refused(sweep_of(), layout)


def test_a_decomposition_of_version_0_1(layout):
    """Its results end in a line that says how to make them again, not in a KeyError."""
    path = layout.run("inference_2d", 2).decomposition
    path.write_text(path.read_text().replace("profiling_overhead", "profiling_price"))
    again = "another version of trisect wrote it; make it again: snakemake --forcerun decompose -- report"
    assert refused(sweep_of(), layout) == f"{path}: no column 'profiling_overhead': {again}"


def test_a_log_of_another_run(tmp_path):
    cluster = sweep_of(machine="v100", size="published", gpus=[4, 8])
    layout = Layout(tmp_path)
    write_runs(made(cluster, of_links(cluster.machine.links, 4)), layout, [4, 8], logs=True)
    wrong = layout.run("inference_2d", 8).nccl / "nccl.log"
    wrong.write_text((layout.run("inference_2d", 4).nccl / "nccl.log").read_text())
    assert "these logs are of 4 ranks, the run has 8" in refused(cluster, layout)
