"""Put all counts of one experiment beside the smallest."""

from pathlib import Path

import pandas as pd
from snakemake.iocontainers import Snakemake

from trisect.analysis import scaling
from trisect.errors import shown
from trisect.tables import SCALING

snakemake: Snakemake  # Snakemake puts it there

with shown(Path(snakemake.log[0])):
    tables = [pd.read_csv(path) for path in snakemake.input.decompositions]
    iterations = [pd.read_parquet(path) for path in snakemake.input.iterations]
    runs = {int(table["gpus"].iloc[0]): (table, steps) for table, steps in zip(tables, iterations, strict=True)}
    scaling(runs)[SCALING].to_csv(snakemake.output[0], index=False)
