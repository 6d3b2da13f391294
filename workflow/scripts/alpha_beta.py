"""Fit latency and rate to every probe of the sweep's counts."""

from pathlib import Path

from snakemake.iocontainers import Snakemake

from trisect.config.loading import load
from trisect.errors import shown
from trisect.launch.progress_log import progress_log
from trisect.pipeline.alpha_beta import write_fits
from trisect.results.layout import Layout

snakemake: Snakemake  # Snakemake puts it there

log = Path(snakemake.log[0])
say = progress_log(log)

with shown(log):
    sweep = load(snakemake.config, Path("config"))
    for line in write_fits(Layout(Path(sweep.settings.results)), sweep.probes()):
        say(line)
