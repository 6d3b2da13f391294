"""Draw one figure over all experiments."""

from pathlib import Path

from snakemake.iocontainers import Snakemake

from trisect.config import load
from trisect.errors import shown
from trisect.files.report import figure_table
from trisect.layout import Layout
from trisect.report import figures

snakemake: Snakemake  # Snakemake puts it there

with shown(Path(snakemake.log[0])):
    sweep = load(snakemake.config, Path("config"))
    name = snakemake.wildcards.figure
    table = figure_table(name, Layout(Path(sweep.settings.results)), sweep.settings.experiments)
    figures.save(name, table, Path(snakemake.output[0]), snakemake.params.unit)
