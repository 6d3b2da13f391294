"""Start ranks on this machine or through SLURM, follow them, and say how they ended; the only importer of submitit."""

from trisect.errors import require_extra

require_extra("sweep", "submitit", "psutil")
