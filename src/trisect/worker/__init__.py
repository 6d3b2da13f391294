"""What runs in each rank: problems, solvers, measuring, the probe; the only importer of torch and deepinv."""
