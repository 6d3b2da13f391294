"""The only reader of Kineto files: one trace a rank in, tables of sections and collectives out."""

from trisect.trace.job import read_job

__all__ = ["read_job"]
