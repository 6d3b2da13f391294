"""Draw one figure over all experiments."""

from pathlib import Path

import pandas as pd
from snakemake.iocontainers import Snakemake

from trisect.config import load
from trisect.errors import shown
from trisect.files.report import ranks_of
from trisect.layout import Layout
from trisect.report import figures

snakemake: Snakemake  # Snakemake puts it there

with shown(Path(snakemake.log[0])):
    table = pd.concat([pd.read_csv(path) for path in snakemake.input.scaling], ignore_index=True)
    if snakemake.wildcards.figure in figures.RANK_FIGURES:
        layout = Layout(Path(load(snakemake.config, Path("config")).settings.results))
        table = ranks_of(layout, table)
    figures.save(snakemake.wildcards.figure, table, Path(snakemake.output[0]))
