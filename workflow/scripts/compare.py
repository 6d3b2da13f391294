"""Compare this sweep with an earlier one, before and after a change."""

import sys
from pathlib import Path

from snakemake.iocontainers import Snakemake

from trisect.errors import shown
from trisect.files.comparison import compare_folders, in_words, write_comparison

snakemake: Snakemake  # Snakemake puts it there

with shown(Path(snakemake.log[0])):
    target = Path(snakemake.output[0])
    found = compare_folders(Path(snakemake.params.against), target.parent)
    write_comparison(found, target)
    print(*in_words(found), sep="\n", file=sys.stderr)
