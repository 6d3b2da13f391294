"""Compare this sweep with an earlier one, the baseline."""

import sys
from pathlib import Path

from snakemake.iocontainers import Snakemake

from trisect.errors import shown
from trisect.pipeline.compare import compare_folders, write_comparison
from trisect.report.text.tables_text import comparison_text

snakemake: Snakemake  # Snakemake puts it there

with shown(Path(snakemake.log[0])):
    target = Path(snakemake.output[0])
    found = compare_folders(Path(snakemake.params.against), target.parent)
    write_comparison(found, target)
    print(*comparison_text(found), sep="\n", file=sys.stderr)
