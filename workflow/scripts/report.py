"""Put findings, figures, tables and what each run ran on into one page."""

from pathlib import Path

import pandas as pd
from snakemake.iocontainers import Snakemake

from trisect.errors import shown
from trisect.record import RunRecord
from trisect.report import page

snakemake: Snakemake  # Snakemake puts it there

with shown(Path(snakemake.log[0])):
    output = Path(snakemake.output[0])
    html = page.render(
        pd.concat([pd.read_csv(path) for path in snakemake.input.scaling], ignore_index=True),
        [RunRecord.read(Path(path)) for path in snakemake.input.records],
        {},
        {Path(path).stem: Path(path).read_text() for path in snakemake.input.figures},
        snakemake.params.captions,
        results=output.parent,
    )
    output.write_text(html)
