"""The rate that a measured transfer implies: bytes of the algorithm over time, by route, and how well one predicts."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from trisect.config.machine import Links
from trisect.network.byte_rules import Algorithm, assumed_algorithms, bytes_sent
from trisect.network.nccl_log import UNKNOWN_ALGORITHM
from trisect.results.notes import Note, note
from trisect.results.tables import RATES, TOTAL, counts_of

IMPLIED = list(RATES)[list(RATES).index("section") : list(RATES).index("off") + 1]
"""The columns of RATES that `implied` gives; `pipeline.rates` knows the others."""

HIDDEN = 0.05
"""Communication under compute, over the transfer, from which it is named as what makes a rate too high."""


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
        IMPLIED: a row for each section, count above 1 and assumed algorithm; none where no known payload moves. Where
        a transfer's interval reaches 0, that of its rate is open above: its end is infinite.
    """
    rows = []
    usable = (scaling["section"] != TOTAL) & (scaling["gpus"] > 1) & (scaling["payload_bytes"] > 0)
    for row in scaling[usable & (scaling["transfer_s"] > 0)].to_dict("records"):
        gpus, section = int(row["gpus"]), str(row["section"])
        known = algorithms.get((section, gpus), UNKNOWN_ALGORITHM)
        across = gpus > per_node[gpus]
        for assumed in assumed_algorithms(known):
            sent = bytes_sent("all_reduce", assumed, row["payload_bytes"], gpus, per_node[gpus])
            moved = sent.between if across else sent.inside
            seconds = np.array([row[f"transfer_s{end}"] for end in ("", "_hi", "_lo")])
            rates = np.divide(moved, seconds, out=np.full(3, np.inf), where=seconds != 0) / 1e9
            route = "between" if across else "inside"
            machine = _of_machine(links, gpus, assumed, across)
            rows.append((section, gpus, route, known, assumed, moved, row["transfer_s"], *rates, machine))
    table = pd.DataFrame(rows, columns=list(IMPLIED[:-2]))
    apart = table["gpus"].where(table["route"] == "inside", 0)  # more GPUs of a node may use more links at once
    same = table.sort_values("gpus").groupby(["section", "route", apart.rename("apart"), "reading"])
    fitted = same["gb_per_s"].transform("first")
    return table.assign(fitted_at=same["gpus"].transform("first"), off=fitted / table["gb_per_s"] - 1)


def probed(rates: pd.DataFrame, fits: pd.DataFrame | None) -> pd.Series:
    """By row of RATES, what tables.FITS has for its count and assumed algorithm, of the fastest protocol; or NaN."""
    if fits is None:
        return pd.Series(float("nan"), index=rates.index)
    fastest = fits.groupby(["gpus", "reading"])["gb_per_s"].max()
    return pd.Series(fastest.reindex(pd.MultiIndex.from_frame(rates[["gpus", "reading"]])).to_numpy(), rates.index)


def _of_machine(links: Links | None, gpus: int, assumed: Algorithm, across: bool) -> float:
    if links is None:
        return float("nan")
    return links.network_gb_per_s.get(assumed, float("nan")) if across else links.inside_gb_per_s(gpus)


def rate_notes(rates: pd.DataFrame) -> list[Note]:
    """What to know about the RATES of one experiment before believing one; docs/report.md has the rules."""
    if rates.empty:
        return [note("nothing_moves")]
    unknown = rates.loc[rates["algorithm"] == UNKNOWN_ALGORITHM, "gpus"]
    cut = rates.drop_duplicates("gpus").set_index("gpus")["cut_lines"]
    return [
        *_constants(rates),
        *_above(rates),
        *([note("algorithm_unknown", counts=counts_of(unknown))] if len(unknown) else []),
        *(note("log_cut", gpus=gpus, lines=lines) for gpus, lines in cut.to_dict().items() if lines),
    ]


def _constants(rates: pd.DataFrame) -> Iterator[Note]:
    """How well one rate, fitted at one count, predicts the transfer at the others."""
    between = rates[rates["route"] == "between"]
    for (section, assumed), rows in between.groupby(["section", "reading"], sort=False):
        held_out = rows[rows["gpus"] != rows["fitted_at"]]
        if held_out.empty:
            continue
        fitted = rows[rows["gpus"] == rows["fitted_at"]].iloc[0]
        about = {"section": str(section), "assumed": str(assumed), "fitted_at": int(fitted["gpus"])}
        worst, counts = float(held_out["off"].abs().max()), counts_of(held_out["gpus"])
        yield note("rate_holds", **about, gb_per_s=float(fitted["gb_per_s"]), worst=worst, counts=counts)


def _above(rates: pd.DataFrame) -> Iterator[Note]:
    """Rates of which even the lower end exceeds the machine's, and why that can be; none is clipped."""
    least = rates["gb_per_s_lo"].fillna(rates["gb_per_s"])
    above = rates[least > rates["machine_gb_per_s"]].drop_duplicates(["section", "gpus", "gb_per_s"])
    for row in above.to_dict("records"):
        same = rates[(rates["section"] == row["section"]) & (rates["gpus"] == row["gpus"])]
        lower = same[same["gb_per_s"] < row["gb_per_s"]].to_dict("records")
        hidden = row["hidden_s"] >= HIDDEN * row["transfer_s"]
        other = lower[0] if row["algorithm"] == UNKNOWN_ALGORITHM and lower else {}
        yield note(
            "rate_above",
            **{name: row[name] for name in ("section", "gpus", "gb_per_s", "machine_gb_per_s")},
            assumed=row["reading"],
            hidden_share=row["hidden_s"] / (row["hidden_s"] + row["transfer_s"]) if hidden else None,
            other=other.get("reading"),
            other_gb_per_s=other.get("gb_per_s"),
        )
