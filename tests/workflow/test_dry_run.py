import re

import yaml

from trisect.config.loading import load
from trisect.launch.forecast import forecast, with_times
from trisect.launch.job import Job
from trisect.launch.preflight import left_out
from trisect.launch.request import request
from trisect.report.text.note_words import all_in_words

from .conftest import REPOSITORY, Project


def test_dry_run_plans_the_whole_sweep_and_launches_nothing(project: Project) -> None:
    done = project.snakemake("-n", "sweep")
    assert done.returncode == 0, done.stdout
    planned = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
    assert planned["benchmark"] == planned["decompose"] == "8"
    assert planned["scaling"] == "4"
    assert planned["report"] == "1"
    assert "inference_2d gpus-2: 2 ranks on this machine, which has " in done.stdout
    assert "left out" not in done.stdout
    assert project.launched == []


def test_one_count_needs_nothing_else(project: Project) -> None:
    done = project.snakemake("-n", "results/inference_2d/gpus-4/decomposition.csv")
    assert done.returncode == 0, done.stdout
    assert "benchmark        1" in done.stdout
    assert "scaling" not in done.stdout


def test_dry_run_on_a_cluster_shows_what_every_run_asks_for(project: Project) -> None:
    """One line a run, of the same making as the real submission; and the counts that nothing is asked for at."""
    done = project.snakemake("-n", "--profile", "profiles/slurm", "sweep")
    assert done.returncode == 0, done.stdout
    config = project.folder / "config"
    settings = yaml.safe_load((config / "config.yaml").read_text())
    settings |= yaml.safe_load((REPOSITORY / "profiles/slurm/sweep.yaml").read_text())
    sweep = with_times(load(settings, config), config)
    shown = {line.partition(": ")[2] for line in done.stdout.splitlines() if re.match(r"Job \d", line)}
    jobs = [Job.of(run, sweep.limit_minutes(run.name, run.gpus)) for run in sweep.runs()]
    assert len(jobs) == 26
    assert shown == {f"{job.name}: {request(job, sweep.machine)}" for job in jobs}
    said = all_in_words(forecast(sweep) + left_out(sweep), "GPU")
    assert set(said) <= set(done.stdout.splitlines())
    assert "training_3d does not fit on fewer than 3 at size published: left out at 1 and 2" in said
    assert re.fullmatch(r"the sweep: [\d.]+ hours of runs, [\d.]+ GPU hours \(modelled\)", said[-2])


def test_a_machine_copied_from_the_template_is_asked_for_as_it_says(project: Project) -> None:
    template = (project.folder / "config/machines/slurm.yaml").read_text()
    mine = template.replace("partition: null", "partition: a100").replace("gpus_per_node: 4", "gpus_per_node: 8")
    (project.folder / "config/machines/mine.yaml").write_text(mine)
    done = project.snakemake("-n", "--profile", "profiles/slurm", "probe", "--config", "machine=mine", "gpus=[16]")
    assert done.returncode == 0, done.stdout
    (line,) = [line for line in done.stdout.splitlines() if "probe gpus-16 chosen: " in line]
    assert "2 nodes of 8 tasks, at most 30 minutes; sbatch " in line
    assert "--cpus-per-task=8 " in line
    assert " --exclusive --gres=gpu:8 " in line
    assert " --partition=a100 " in line
