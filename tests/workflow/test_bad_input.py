"""Every mistake ends before anything is launched: one line that says what is wrong and where, exit code not 0."""

from collections.abc import Callable

import pytest
import torch

from .conftest import Project


def complaint(project: Project, *arguments: str) -> str:
    """The one line with which Snakemake refuses; nothing was launched."""
    done = project.snakemake(*arguments)
    lines = [line for line in done.stdout.splitlines() if line.startswith("trisect: ")]
    assert done.returncode != 0
    assert len(lines) == 1, done.stdout
    assert "Traceback" not in done.stdout
    assert project.launched == []
    return lines[0]


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("gpu=[1]", "unknown key 'gpu'; did you mean 'gpus'?"),
        ("gpus=[0]", "gpus.0: Input should be greater than or equal to 1 (got 0)"),
        ("gpus=[-4]", "gpus.0: Input should be greater than or equal to 1 (got -4)"),
        ("gpus=[2,2]", "gpus: 2 is there twice"),
        ("gpus=[1.5]", "gpus.0: Input should be a valid integer"),
        ("gpus=[6]", "gpus: 6 is above the node size 4 and no multiple of it; use 4 or 8"),
        ("experiments=[inference2d]", "no 'inference2d' in config/experiments/; did you mean 'inference_2d'?"),
        ("results=config/config.yaml", "results: cannot write to"),
    ],
)
def test_settings(project: Project, setting: str, words: str) -> None:
    assert words in complaint(project, "sweep", "--config", setting)


EXPERIMENT_MISTAKES: list[tuple[Callable[[dict], None], str]] = [
    (lambda c: c.update(operators=0), "config/experiments/inference_2d.yaml: operators"),
    (lambda c: c.update(mode="training", unrolled_iterations=0), "unrolled_iterations: Input should be greater"),
    (lambda c: c["sizes"]["tiny"].update(patch=64), "sizes.tiny: patch 64 must be smaller than the image"),
    (lambda c: c["sizes"]["tiny"].update(weights="missing.pt"), "no file 'missing.pt'"),
    (lambda c: c.update(problm="x"), "unknown key 'problm'; did you mean 'problem'?"),
]


@pytest.mark.parametrize(("change", "words"), EXPERIMENT_MISTAKES)
def test_experiment_files(project: Project, change: Callable[[dict], None], words: str) -> None:
    project.edit("experiments/inference_2d.yaml", change)
    assert words in complaint(project, "sweep")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("results/inference_2d/gpus-6/decomposition.csv", "gpus: 6 is above the node size 4"),
        ("results/inference_2d/gpus-0/decomposition.csv", "gpus: 0 is no GPU count"),
        ("results/inference2d/gpus-2/decomposition.csv", "did you mean 'inference_2d'?"),
    ],
)
def test_a_single_run_that_cannot_be(project: Project, target: str, words: str) -> None:
    assert words in complaint(project, target)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_cuda_where_there_is_none(project: Project) -> None:
    project.edit("machines/laptop.yaml", lambda c: c.update(device="cuda", backend="nccl"))
    assert "device: cuda, but torch" in complaint(project, "sweep")


def test_unknown_problem_is_named_by_the_run_that_asks_for_it(project: Project) -> None:
    project.edit("experiments/inference_2d.yaml", lambda c: c.update(problem="tomography"))
    done = project.snakemake("results/inference_2d/gpus-2/decomposition.csv")
    assert done.returncode != 0
    assert "problem: no 'tomography' in trisect.worker.problems; there are deconvolution" in done.stdout
