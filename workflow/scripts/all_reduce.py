"""Launch the probe of one count, say how it goes, and return when its record and table stand."""

import os
from pathlib import Path

from snakemake.iocontainers import Snakemake

from trisect.config import ProbeRun, load
from trisect.errors import shown
from trisect.launch import Job, run, teller
from trisect.layout import ProbeLayout
from trisect.record import ProbeRecord

snakemake: Snakemake  # Snakemake puts it there
log = Path(snakemake.log[0])
say = teller(log)

with shown(log):
    probe = ProbeRun.model_validate_json(snakemake.params.probe)
    # Not a parameter of the rule: another partition or time limit is no reason to measure again.
    machine = load(snakemake.config, Path("config")).machine.model_copy(update={"environment": probe.environment})
    files = ProbeLayout(Path(snakemake.output.record).parent)
    job = Job(
        name=f"probe gpus-{probe.gpus} {probe.algorithm}",
        target="trisect.bench.probe:work",
        payload=snakemake.params.probe,
        ranks=probe.gpus,
        iterations=len(probe.payload_bytes),
    )
    run(job, machine, files, say, on_behalf_of=os.getppid())
    left_out = ProbeRecord.read(files.record).left_out
    if left_out:
        say(f"{job.name}: left out {left_out}")
