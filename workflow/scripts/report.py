"""Put findings, figures, tables and what each run ran on into one page."""

from pathlib import Path

from snakemake.iocontainers import Snakemake

from trisect.config.loading import load
from trisect.errors import shown
from trisect.pipeline.sweep_report import write_report
from trisect.results.layout import Layout

snakemake: Snakemake  # Snakemake puts it there

with shown(Path(snakemake.log[0])):
    sweep = load(snakemake.config, Path("config"))
    drawings = {Path(path).stem: Path(path).read_text() for path in snakemake.input.figures}
    write_report(sweep, Layout(Path(sweep.settings.results)), drawings)
