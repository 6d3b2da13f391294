"""Start ranks on this machine or through SLURM, follow them, and say how they ended; the only importer of submitit."""
