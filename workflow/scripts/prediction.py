"""Fit a model to some of an experiment's counts, and compare it with the others."""

import sys
from pathlib import Path

from snakemake.iocontainers import Snakemake

from trisect.config.loading import load
from trisect.errors import shown
from trisect.pipeline.prediction import write_prediction
from trisect.results.layout import Layout

snakemake: Snakemake  # Snakemake puts it there

with shown(Path(snakemake.log[0])):
    sweep = load(snakemake.config, Path("config"))
    words = write_prediction(sweep, Layout(Path(sweep.settings.results)), snakemake.wildcards.experiment)
    print(*words, sep="\n", file=sys.stderr)
