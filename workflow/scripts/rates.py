"""Compare each measured transfer of one experiment with the time that its bytes should take."""

from pathlib import Path

from snakemake.iocontainers import Snakemake

from trisect.config.loading import load
from trisect.errors import shown
from trisect.pipeline.rates import write_rates
from trisect.results.layout import Layout

snakemake: Snakemake  # Snakemake puts it there

with shown(Path(snakemake.log[0])):
    sweep = load(snakemake.config, Path("config"))
    write_rates(Layout(Path(sweep.settings.results)), snakemake.wildcards.experiment, sweep.machine)
