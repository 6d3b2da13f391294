from collections import Counter

from .conftest import Project


def test_dry_run_plans_the_whole_sweep_and_launches_nothing(project: Project) -> None:
    done = project.snakemake("-n", "sweep")
    assert done.returncode == 0, done.stdout
    planned = Counter(line.split()[1].rstrip(":") for line in done.stdout.splitlines() if line.startswith("localrule "))
    planned.update(line.split()[1].rstrip(":") for line in done.stdout.splitlines() if line.startswith("rule "))
    assert planned["benchmark"] == planned["decompose"] == 8
    assert planned["scaling"] == 4
    assert planned["report"] == 1
    assert project.launched == []


def test_one_count_needs_nothing_else(project: Project) -> None:
    done = project.snakemake("-n", "results/inference_2d/gpus-4/decomposition.csv")
    assert done.returncode == 0, done.stdout
    assert "benchmark        1" in done.stdout
    assert "scaling" not in done.stdout
