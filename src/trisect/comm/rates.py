"""The rate that a measured transfer implies: bytes of the algorithm over time, by route, and how well one predicts."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from trisect.comm.bytes import RING, TREE, Algorithm, bytes_sent
from trisect.comm.nccl_log import UNKNOWN
from trisect.comm.pace import inside_gb_per_s
from trisect.settings import Links
from trisect.tables import TOTAL

RATES = (
    "section",
    "gpus",
    "route",  # "inside" one node, "between" nodes
    "algorithm",  # what NCCL's log names, or "unknown"; gloo's is a ring
    "reading",  # the algorithm whose bytes are taken; both where it is unknown
    "sent_bytes",  # by a GPU inside a node, by a node between nodes
    "transfer_s",
    "gb_per_s",  # sent_bytes / transfer_s
    "gb_per_s_lo",
    "gb_per_s_hi",
    "machine_gb_per_s",  # what the machine's file has for that route and reading; NaN where it has none
    "fitted_at",  # the smallest count of that section, route and reading; inside a node each count is a route
    "off",  # transfer over what that constant predicts, less 1; 0 at `fitted_at` itself
)
"""Columns of `implied`."""

TABLE = (
    "experiment",
    *RATES,
    "probed_gb_per_s",  # what results/probe/fits.csv has for that count and reading; NaN where it has none
    "hidden_s",  # communication under compute, which transfer_s leaves out
    "iterations",
    "oversubscribed",
    "cut_lines",  # of the run's NCCL logs, left out
)
"""Columns of rates.csv."""


def implied(
    scaling: pd.DataFrame,
    per_node: Mapping[int, int],
    algorithms: Mapping[tuple[str, int], str],
    links: Links | None = None,
) -> pd.DataFrame:
    """Implied rates of one experiment's sections, all of whose payload is taken as moved by all_reduces.

    Args:
        scaling: rows of tables.SCALING of one experiment.
        per_node: by count, the GPUs of a node.
        algorithms: by section and count, what NCCL took for the section's largest all_reduce; may lack some.
        links: of the machine's file, if it has any.

    Returns:
        RATES: a row for each section, count above 1 and reading. None where a section moves no known payload.
    """
    rows = []
    usable = (scaling["section"] != TOTAL) & (scaling["gpus"] > 1) & (scaling["payload_bytes"] > 0)
    for row in scaling[usable & (scaling["transfer_s"] > 0)].to_dict("records"):
        gpus, section = int(row["gpus"]), str(row["section"])
        known = algorithms.get((section, gpus), UNKNOWN)
        across = gpus > per_node[gpus]
        for reading in [how for how in (RING, TREE) if how == known] or [RING, TREE]:
            sent = bytes_sent("all_reduce", reading, row["payload_bytes"], gpus, per_node[gpus])
            moved = sent.between if across else sent.inside
            rates = [moved / row[f"transfer_s{end}"] / 1e9 for end in ("", "_hi", "_lo")]
            route = "between" if across else "inside"
            rates.append(_of_machine(links, gpus, reading, across))
            rows.append((section, gpus, route, known, reading, moved, row["transfer_s"], *rates))
    table = pd.DataFrame(rows, columns=list(RATES[:-2]))
    apart = table["gpus"].where(table["route"] == "inside", 0)  # more GPUs of a node may use more links at once
    same = table.sort_values("gpus").groupby(["section", "route", apart.rename("apart"), "reading"])
    fitted = same["gb_per_s"].transform("first")
    return table.assign(fitted_at=same["gpus"].transform("first"), off=fitted / table["gb_per_s"] - 1)


def probed(rates: pd.DataFrame, fits: pd.DataFrame | None) -> pd.Series:
    """For each row of RATES, the rate that the probe found for its count and reading: the fastest protocol's; or NaN.

    Args:
        rates: RATES.
        fits: results/probe/fits.csv; None where nothing was probed.
    """
    if fits is None:
        return pd.Series(float("nan"), index=rates.index)
    fastest = fits.groupby(["gpus", "reading"])["gb_per_s"].max()
    return pd.Series(fastest.reindex(pd.MultiIndex.from_frame(rates[["gpus", "reading"]])).to_numpy(), rates.index)


def _of_machine(links: Links | None, gpus: int, reading: Algorithm, across: bool) -> float:
    if links is None:
        return float("nan")
    return links.network_gb_per_s.get(reading, float("nan")) if across else inside_gb_per_s(links, gpus)
