"""A GPU-count sweep, measured, cut into compute, transfer and wait, and reported."""

from pathlib import Path

from trisect.config import load
from trisect.errors import TrisectError
from trisect.layout import Layout

configfile: "config/config.yaml"

try:
    SWEEP = load(config, Path("config"))
    LAYOUT = Layout(Path(SWEEP.settings.results))
    LAYOUT.require_writable()
except TrisectError as mistake:
    raise SystemExit(f"trisect: {mistake}")

RUN = LAYOUT.run("{experiment}", "{gpus}")

include: "workflow/rules/benchmark.smk"
include: "workflow/rules/decompose.smk"
include: "workflow/rules/report.smk"


rule sweep:
    default_target: True
    input:
        LAYOUT.report,
