"""The rule `scaling`: the decompositions of one experiment, each count beside the smallest, to scaling.csv."""

from collections.abc import Iterable

import pandas as pd

from trisect.analysis.baseline import scaling
from trisect.host import write_whole
from trisect.results.layout import Layout, RunLayout
from trisect.results.tables import ITERATIONS, RUN_DECOMPOSITION, SCALING, read_table


def scaling_of(runs: Iterable[RunLayout]) -> pd.DataFrame:
    """tables.SCALING over runs of one experiment.

    Raises:
        TrisectError: there is none, or a file is missing or damaged.
    """
    read = [(read_table(run.decomposition, RUN_DECOMPOSITION), read_table(run.iterations, ITERATIONS)) for run in runs]
    return scaling({int(table["gpus"].iloc[0]): (table, iterations) for table, iterations in read})[list(SCALING)]


def write_scaling(layout: Layout, experiment: str, counts: Iterable[int]) -> None:
    """Write scaling.csv of one experiment over these counts.

    Raises:
        TrisectError: as `scaling_of`.
    """
    table = scaling_of(layout.run(experiment, gpus) for gpus in counts)
    write_whole(layout.scaling(experiment), table.to_csv(index=False))
