"""The contract of the results folder: its paths, tables, run records and notes."""
