"""Draw one figure over all experiments."""

from pathlib import Path

from snakemake.iocontainers import Snakemake

from trisect.config.loading import load
from trisect.errors import shown
from trisect.pipeline.sweep_report import write_figure
from trisect.results.layout import Layout

snakemake: Snakemake  # Snakemake puts it there

with shown(Path(snakemake.log[0])):
    settings = load(snakemake.config, Path("config")).settings
    target, unit = Path(snakemake.output[0]), snakemake.params.unit
    write_figure(snakemake.wildcards.figure, Layout(Path(settings.results)), settings.experiments, target, unit)
