"""What runs in each rank: the deepinv solver, measured. The only importer of torch and deepinv."""
