"""Fit latency and rate to every probe of the sweep's counts."""

from pathlib import Path

from snakemake.iocontainers import Snakemake

from trisect.config import load
from trisect.errors import shown
from trisect.files.probe import write_fits
from trisect.launch import teller
from trisect.layout import Layout

snakemake: Snakemake  # Snakemake puts it there

log = Path(snakemake.log[0])
say = teller(log)

with shown(log):
    sweep = load(snakemake.config, Path("config"))
    for line in write_fits(Layout(Path(sweep.settings.results)), sweep.probes()):
        say(line)
