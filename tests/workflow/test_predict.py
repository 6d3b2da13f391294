"""`snakemake predict`: what it plans, what it writes from decompositions that stand, and what it refuses."""

import pandas as pd
import pytest
from modelled import ALL_REDUCE_COST, WORK, write_runs

from trisect.config.loading import load_experiments
from trisect.model.predict import Model, outline
from trisect.results.layout import Layout
from trisect.results.tables import PREDICTION

from .conftest import Project
from .test_bad_input import complaint


def test_dry_run_plans_the_measurements_and_no_report(project: Project) -> None:
    done = project.snakemake("-n", "predict")
    assert done.returncode == 0, done.stdout
    planned = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
    assert (planned["benchmark"], planned["prediction"], planned["predict"]) == ("8", "4", "1")
    assert "report" not in planned
    assert project.launched == []


def test_decompositions_that_stand_are_predicted_from_and_nothing_is_launched(project: Project) -> None:
    experiment = load_experiments(project.folder / "config")["inference_2d"]
    problem = outline("inference_2d", experiment, "tiny")
    problem.sections.update(WORK)
    layout = Layout(project.folder / "results")
    write_runs(Model(problem, ALL_REDUCE_COST, dict.fromkeys(WORK, 0.0)), layout, [1, 2, 4], shared=[4])
    done = project.snakemake("predict", "--config", "experiments=[inference_2d]", "gpus=[1,2,4]")
    assert done.returncode == 0, done.stdout
    words = layout.prediction_words("inference_2d").read_text()
    assert words in done.stdout
    assert "Held out at 4, where ranks share cores, which the model does not know: span 0 %, compute 0 %" in words
    table = pd.read_csv(layout.prediction("inference_2d"))
    assert tuple(table.columns) == tuple(PREDICTION)
    assert table["gpus"].max() == 1024
    assert not list(layout.root.glob("*/gpus-*/run.json"))
    other = project.snakemake("predict", "--config", "experiments=[inference_2d]", "gpus=[1,2,4]", "predict={fit: [2]}")
    assert "modelled from what was measured at 2 (docs/model.md)" in other.stdout, other.stdout


def test_links_that_cannot_be(project: Project) -> None:
    links = {"pair_gb_per_s": 40, "network_gb_per_s": {"ring": 10}, "tree_nodes": [2]}
    project.edit("machines/laptop.yaml", lambda c: c.update(links=links))
    words = "config/machines/laptop.yaml: links: network_gb_per_s has no rate for 'tree'"
    assert words in complaint(project, "predict")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["predict={fit: [4]}"], "predict.fit: 4 is not among `gpus`, 1, 2, and so is not measured"),
        (["gpus=[1]"], "gpus: inference_2d is measured on 1 alone, where nothing is transferred; add a count"),
    ],
)
def test_settings_that_no_prediction_follows_from(project: Project, settings: list[str], words: str) -> None:
    assert words in complaint(project, "predict", "--config", *settings)
