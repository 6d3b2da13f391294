"""Launch one run, report its progress, and return when its record and traces are in place."""

import os
from pathlib import Path

from snakemake.iocontainers import Snakemake

from trisect.config.loading import load
from trisect.config.plan import Run
from trisect.errors import shown
from trisect.launch.forecast import with_times
from trisect.launch.job import Job
from trisect.launch.preflight import preflight
from trisect.launch.progress_log import progress_log
from trisect.launch.run_job import run_job
from trisect.report.text.note_words import all_in_words
from trisect.results.layout import RunLayout

snakemake: Snakemake  # Snakemake puts it there
log = Path(snakemake.log[0])
say = progress_log(log)

with shown(log):
    run = Run.model_validate_json(snakemake.params.run)
    # Not a parameter of the rule: another partition or time limit is no reason to measure again.
    sweep = with_times(load(snakemake.config, Path("config")), Path("config"))
    machine = sweep.machine
    job = Job.of(run, sweep.limit_minutes(run.name, run.gpus))
    for line in all_in_words(preflight(run, machine), machine.unit):
        say(f"{job.name}: {line}")
    run_job(job, machine, RunLayout(Path(snakemake.output.record).parent), say, on_behalf_of=os.getppid())
