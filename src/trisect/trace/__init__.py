"""Kineto files to tables, one file a rank; the only reader of profiler traces."""
