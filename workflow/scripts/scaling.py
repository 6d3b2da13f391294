"""Put all counts of one experiment beside the smallest."""

from pathlib import Path

from snakemake.iocontainers import Snakemake

from trisect.config.loading import load
from trisect.errors import shown
from trisect.pipeline.scaling import write_scaling
from trisect.results.layout import Layout

snakemake: Snakemake  # Snakemake puts it there

with shown(Path(snakemake.log[0])):
    sweep, name = load(snakemake.config, Path("config")), snakemake.wildcards.experiment
    write_scaling(Layout(Path(sweep.settings.results)), name, sweep.counts(name))
