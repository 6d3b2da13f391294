"""Draw one figure over all experiments."""

from pathlib import Path

import pandas as pd
from snakemake.iocontainers import Snakemake

from trisect.errors import shown
from trisect.report import figures

snakemake: Snakemake  # Snakemake puts it there

with shown(Path(snakemake.log[0])):
    scaling = pd.concat([pd.read_csv(path) for path in snakemake.input.scaling], ignore_index=True)
    figures.save(snakemake.wildcards.figure, scaling, Path(snakemake.output[0]))
