"""Launch the probe of one count, report its progress, and return when its record and table are in place."""

import os
from pathlib import Path

from snakemake.iocontainers import Snakemake

from trisect.config.loading import load
from trisect.config.plan import ProbeRun
from trisect.errors import shown
from trisect.launch.job import Job
from trisect.launch.progress_log import progress_log
from trisect.launch.run_job import run_job
from trisect.report.text.note_words import in_words
from trisect.results.layout import ProbeLayout
from trisect.results.record import ProbeRecord

snakemake: Snakemake  # Snakemake puts it there
log = Path(snakemake.log[0])
say = progress_log(log)

with shown(log):
    probe = ProbeRun.model_validate_json(snakemake.params.probe)
    # Not a parameter of the rule: another partition or time limit is no reason to measure again.
    machine = load(snakemake.config, Path("config")).machine.model_copy(update={"environment": probe.environment})
    files = ProbeLayout(Path(snakemake.output.record).parent)
    job = Job.of(probe)
    run_job(job, machine, files, say, on_behalf_of=os.getppid())
    left_out = ProbeRecord.read(files.record).left_out
    if left_out:
        say(f"{job.name}: left out {in_words(left_out)}")
