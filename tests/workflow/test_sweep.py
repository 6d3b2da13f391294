"""The main job at tiny size, from nothing to a report."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from trisect.analysis.differences import COMPARED
from trisect.report.catalogue import CATALOGUE, CATEGORIES
from trisect.results.layout import Layout
from trisect.results.record import RunRecord
from trisect.results.tables import DECOMPOSITION, RATES, RUN_COLUMNS, SCALING, TOTAL

from .conftest import TINY_ITERATIONS, Project

RUNS = [(name, n) for name in ("inference_2d", "inference_3d", "training_2d", "training_3d") for n in (1, 2)]
SECTIONS = {"inference": ["gradient", "denoiser"], "training": ["forward", "backward"]}


def layout(swept: Project) -> Layout:
    return Layout(swept.folder / "results")


@pytest.mark.parametrize(("experiment", "gpus"), RUNS)
def test_every_run_is_cut_into_three_parts_that_add_up(swept: Project, experiment: str, gpus: int) -> None:
    table = pd.read_csv(layout(swept).run(experiment, gpus).decomposition)
    assert list(table.columns) == ["experiment", *DECOMPOSITION, *RUN_COLUMNS]
    assert list(table["section"]) == [*SECTIONS[experiment.split("_")[0]], TOTAL]
    assert set(table["gpus"]) == {gpus}
    assert set(table["iterations"]) == {TINY_ITERATIONS["measured"]}
    parts = table["compute_s"] + table["transfer_s"] + table["wait_s"]
    np.testing.assert_allclose(parts, table["span_s"], rtol=1e-9)
    assert (table[["compute_s", "transfer_s", "idle_s"]] >= 0).all(axis=None)
    assert (table["repairs"] == 0).all()
    if gpus == 1:
        assert (table["wait_s"] == 0).all()
    ranks = pd.read_parquet(layout(swept).run(experiment, gpus).ranks)
    assert sorted(ranks["rank"].unique()) == list(range(gpus))
    by_section = ranks.groupby("section")["compute_s"].mean()
    np.testing.assert_allclose(by_section[table["section"][:-1]], table["compute_s"][:-1], rtol=1e-9)


def test_collectives_of_a_section_are_paired_one_by_one(swept: Project) -> None:
    table = pd.read_csv(layout(swept).run("inference_2d", 2).collectives)
    one = table[table["iteration"] == table["iteration"].min()]
    assert list(one.loc[one["section"] == "gradient", "op"]) == ["broadcast", "broadcast", "all_reduce", "all_reduce"]
    image_bytes = 48 * 48 * 4
    assert list(one.loc[one["section"] == "denoiser", "bytes"]) == [image_bytes]


@pytest.mark.parametrize(("experiment", "gpus"), RUNS)
def test_every_run_records_what_it_ran_on(swept: Project, experiment: str, gpus: int) -> None:
    files = layout(swept).run(experiment, gpus)
    record = RunRecord.read(files.record)
    assert record.backend == "gloo"
    assert [rank.rank for rank in record.ranks] == list(range(gpus))
    assert sum(rank.tiles for rank in record.ranks) == record.tiles == (8 if experiment.endswith("3d") else 9)
    assert sum(rank.operators for rank in record.ranks) == record.operators
    assert all(set(rank.peak_memory_bytes) == set(record.sections) for rank in record.ranks)
    assert all(peak > 100e6 for rank in record.ranks for peak in rank.peak_memory_bytes.values())
    assert record.patch_effective == record.patch_requested
    assert max(record.correctness.relative_difference.values()) < 1e-4
    assert len(record.profiling.profiled_s) == TINY_ITERATIONS["measured"]
    assert len(record.profiling.unprofiled_s) == TINY_ITERATIONS["unprofiled"]
    assert record.profiling.overhead > 0
    traces = sorted(files.traces.glob("*.json.gz"))
    assert traces == [files.trace(rank) for rank in range(gpus)]
    steps = {e["name"] for e in json.loads(gzip.decompress(traces[0].read_bytes()))["traceEvents"] if "name" in e}
    assert len([name for name in steps if str(name).startswith("ProfilerStep#")]) == TINY_ITERATIONS["measured"]


@pytest.mark.parametrize("experiment", [name for name, n in RUNS if n == 1])
def test_scaling_relates_every_count_to_the_smallest(swept: Project, experiment: str) -> None:
    table = pd.read_csv(layout(swept).scaling(experiment))
    assert list(table.columns) == list(SCALING)
    total = table[table["section"] == TOTAL].set_index("gpus")
    assert list(total.index) == [1, 2]
    assert total.loc[1, "cost"] == 1
    assert total.loc[2, "cost"] == pytest.approx(2 * total.loc[2, "span_s"] / total.loc[1, "span_s"])
    assert total.loc[2, "global_efficiency"] == pytest.approx(total.loc[1, "global_efficiency"] / total.loc[2, "cost"])


def test_report_is_one_file_that_names_every_experiment(swept: Project) -> None:
    page = layout(swept).report.read_text()
    assert all(name in page for name, _ in RUNS)
    assert "<svg" in page
    assert 'src="http' not in page
    assert "url(http" not in page


@pytest.mark.parametrize("experiment", [name for name, n in RUNS if n == 1])
def test_implied_rates_are_a_table_and_in_the_report(swept: Project, experiment: str) -> None:
    rates, scaling = (pd.read_csv(getattr(layout(swept), name)(experiment)) for name in ("rates", "scaling"))
    assert tuple(rates.columns) == tuple(RATES)
    at_2 = scaling[(scaling["gpus"] == 2) & (scaling["section"] != TOTAL)].set_index("section")
    assert set(rates["section"]) == set(at_2.index)
    sent = at_2["payload_bytes"][rates["section"]].to_numpy()  # of 2 ranks each sends the payload once
    np.testing.assert_allclose(rates["gb_per_s"] * 1e9 * rates["transfer_s"], sent)
    assert set(rates["algorithm"]) == {"ring"}  # gloo knows no other
    page = layout(swept).report.read_text()
    assert f"{experiment}/rates.csv" in page
    assert 'id="figure-implied_rate"' in page


def test_a_second_sweep_finds_nothing_to_do(swept: Project) -> None:
    done = swept.snakemake("sweep")
    assert done.returncode == 0
    assert "Nothing to be done" in done.stdout


def test_nothing_is_measured_again_for_a_reformatted_script_or_another_machine_detail(swept: Project) -> None:
    script = swept.folder / "workflow/scripts/benchmark.py"
    before = script.read_text()
    try:
        script.write_text("# a comment\n\n" + before)
        reformatted = swept.snakemake("-n", "sweep").stdout
        swept.edit("machines/laptop.yaml", lambda c: c.update(slurm={"time_limit_minutes": 7}))
        limited = swept.snakemake("-n", "sweep").stdout
        swept.edit("machines/laptop.yaml", lambda c: c.update(nodes=16))
        larger = swept.snakemake("-n", "sweep").stdout
    finally:
        script.write_text(before)
        swept.edit("machines/laptop.yaml", lambda c: (c.pop("nodes"), c.pop("slurm")))
    assert "Nothing to be done" in reformatted
    assert "Nothing to be done" in limited
    assert "rule prediction:" in larger  # which says up to where the machine goes
    assert "benchmark " not in larger
    assert "decompose " not in larger


def test_a_new_version_makes_everything_again_but_the_measurements(
    swept: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import trisect; trisect.__version__ = '999'")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = swept.snakemake("-n", "sweep")
    planned = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
    assert "benchmark" not in planned, done.stdout
    assert planned["decompose"] == "8"
    assert (planned["scaling"], planned["prediction"], planned["rates"]) == ("4", "4", "4")
    assert planned["figure"] == str(len(CATALOGUE))
    assert planned["report"] == "1"


def test_another_seed_measures_again(swept: Project) -> None:
    planned = swept.snakemake("-n", "results/inference_2d/gpus-2/decomposition.csv", "--config", "seed=1").stdout
    assert "benchmark        1" in planned
    assert "Params have changed" in planned


def test_a_timeline_of_every_experiment_is_in_the_report(swept: Project) -> None:
    page = layout(swept).report.read_text()
    for experiment in {name for name, _ in RUNS}:
        files = next(
            layout(swept).run(experiment, n) for n in (2, 1) if layout(swept).run(experiment, n).timeline.exists()
        )
        content = json.loads(gzip.decompress(files.timeline.read_bytes()))
        ranks = {event["tid"] for event in content["traceEvents"] if event["ph"] == "X"}
        assert len(ranks) == content["otherData"]["ranks"]
        assert f"{experiment}/{files.folder.name}/timeline.json.gz" in page
        assert f"slowest iteration ({content['traceEvents'][0]['args']['name'].split()[1].strip(',')})" in page


def test_a_sweep_compared_with_itself_differs_in_nothing(swept: Project) -> None:
    done = swept.snakemake("compare", "--config", "against=results")
    assert done.returncode == 0, done.stdout
    table = pd.read_csv(layout(swept).comparison)
    assert len(table) == len(RUNS) * 3 * len(COMPARED)
    assert set(table["verdict"]) == {"within noise"}
    assert f"{len(table)} differences: {len(table)} within noise." in done.stdout


@pytest.mark.parametrize(("arguments", "said"), [([], "not set"), (["--config", "against=old"], "no run in 'old'")])
def test_compare_needs_another_sweep(swept: Project, arguments: list[str], said: str) -> None:
    done = swept.snakemake("compare", *arguments)
    assert done.returncode != 0
    assert f"trisect: against: {said}; name an earlier sweep's results" in done.stdout
    assert "Traceback" not in done.stdout


def test_snakemake_report_holds_the_figures_with_captions(swept: Project, tmp_path: Path) -> None:
    target = tmp_path / "snakemake-report.html"
    done = swept.snakemake("sweep", "--report", str(target))
    assert done.returncode == 0, done.stdout
    page = target.read_text()
    for category in CATEGORIES.values():
        assert f'"{category}"' in page
    for entry in CATALOGUE.values():
        assert entry.title in page
        assert entry.worded("rank").caption[:30] in page
    assert "snakemake --force -- results/figures/cost.svg" in page


def test_the_command_line_gives_the_same_numbers(swept: Project, tmp_path: Path) -> None:
    files = layout(swept).run("inference_2d", 2)
    command = [str(Path(sys.executable).with_name("trisect")), "decompose", str(files.traces), "--out", str(tmp_path)]
    done = subprocess.run(
        [*command, "--section", "gradient", "--section", "denoiser"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    mine, theirs = pd.read_csv(tmp_path / "decomposition.csv"), pd.read_csv(files.decomposition)
    pd.testing.assert_frame_equal(mine, theirs[list(DECOMPOSITION)])
