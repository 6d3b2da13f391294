"""What runs in each rank: problems, solvers, measuring, the probe; the only importer of torch and deepinv."""

from trisect.errors import require_extra

require_extra("sweep", "torch", "deepinv", "psutil")
