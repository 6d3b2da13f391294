"""The public sample traces, where they are at hand; they are no part of the project."""

import os
from pathlib import Path

import pytest

SAMPLES = Path(os.environ.get("TRISECT_SAMPLE_TRACES", Path(__file__).parents[2] / "shared" / "traces"))
needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="no sample traces; set TRISECT_SAMPLE_TRACES")
