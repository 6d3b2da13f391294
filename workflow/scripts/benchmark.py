"""Launch one run, say how it goes, and return when its record and traces stand."""

import os
from pathlib import Path

from snakemake.iocontainers import Snakemake

from trisect.config import Run, load
from trisect.errors import shown
from trisect.launch import Job, run, teller
from trisect.layout import RunLayout
from trisect.outlook import outlook

snakemake: Snakemake  # Snakemake puts it there
log = Path(snakemake.log[0])
say = teller(log)

with shown(log):
    parameters = Run.model_validate_json(snakemake.params.run)
    # Not a parameter of the rule: another partition or time limit is no reason to measure again.
    machine = load(snakemake.config, Path("config")).machine
    job = Job(
        name=f"{parameters.name} gpus-{parameters.gpus}",
        target="trisect.bench.worker:work",
        payload=snakemake.params.run,
        ranks=parameters.gpus,
        iterations=parameters.iterations.measured,
    )
    for line in outlook(parameters, machine):
        say(f"{job.name}: {line}")
    run(job, machine, RunLayout(Path(snakemake.output.record).parent), say, on_behalf_of=os.getppid())
