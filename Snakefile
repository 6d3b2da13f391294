"""A GPU-count sweep, measured, cut into compute, transfer and wait, and reported."""

import sys
from pathlib import Path

from trisect import __version__
from trisect.config.loading import load
from trisect.errors import TrisectError
from trisect.host import hold
from trisect.launch.forecast import forecast, with_times
from trisect.launch.job import Job
from trisect.launch.preflight import left_out, predictable, require_device
from trisect.launch.request import request
from trisect.report.catalogue import CATALOGUE, CATEGORIES, TIMELINE
from trisect.report.text.note_words import all_in_words
from trisect.results.layout import Layout


include: "workflow/rules/common.smk"
include: "workflow/rules/benchmark.smk"
include: "workflow/rules/decompose.smk"
include: "workflow/rules/predict.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/probe.smk"


wildcard_constraints:
    gpus=r"\d+",


rule sweep:
    """The main job: every experiment at every count, and the report."""
    default_target: True
    input:
        LAYOUT.report,


rule probe:
    """All_reduces from 1 KB to 1 GB at every count: latency, rate, and whether results are right."""
    input:
        LAYOUT.fits,


onstart:
    try:
        # Unlike Snakemake's own lock it does not outlive a process that was killed.
        hold(LAYOUT.lock, "another snakemake")
    except TrisectError as mistake:
        raise SystemExit(f"trisect: {mistake}")
    print_preflight()
