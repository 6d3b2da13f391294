"""Cut one run's sections into compute, transfer and wait."""

from pathlib import Path

from snakemake.iocontainers import Snakemake

from trisect.errors import shown
from trisect.pipeline.decompose import of_run, write_decomposition
from trisect.results.layout import RunLayout
from trisect.results.record import RunRecord

snakemake: Snakemake  # Snakemake puts it there


def main() -> None:
    """Read the record and the traces, write the tables."""
    record = RunRecord.read(Path(snakemake.input.record))
    write_decomposition(
        Path(snakemake.input.traces),
        RunLayout(Path(snakemake.output.decomposition).parent),
        sections=record.sections,
        annotate=lambda table: of_run(table, record),
    )


if __name__ == "__main__":  # the processes that read traces import this file too
    with shown(Path(snakemake.log[0])):
        main()
