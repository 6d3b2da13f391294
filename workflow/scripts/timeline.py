"""Put one run's slowest and median iteration on one clock: a file for Perfetto, and a drawing."""

from pathlib import Path

from snakemake.iocontainers import Snakemake

from trisect.errors import shown
from trisect.pipeline.timelines import write_timeline
from trisect.results.layout import RunLayout

snakemake: Snakemake  # Snakemake puts it there

if __name__ == "__main__":  # the processes that read traces import this file too
    with shown(Path(snakemake.log[0])):
        write_timeline(RunLayout(Path(snakemake.output.trace).parent))
