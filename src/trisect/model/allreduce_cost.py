"""What all_reduces cost at any count: by a machine's links, or by lines that a few counts gave. docs/model.md."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

import pandas as pd

from trisect.config.machine import AUTO, Links, Machine
from trisect.errors import TrisectError
from trisect.network.byte_rules import RING, TREE, Algorithm, bytes_sent, steps


@dataclass(frozen=True)
class AllReduceCost:
    """Algorithm, rates and latency of all_reduces at one count."""

    gpus: int
    per_node: int
    algorithm: Algorithm
    inside_gb_per_s: float  # by a GPU to others of its node; infinite where nothing is known to be slowed there
    between_gb_per_s: float  # by a node to others
    step_s: float  # what each step takes besides its bytes

    def transfer_s(self, payload_bytes: float, count: int = 1) -> float:
        """Seconds of `count` all_reduces that move `payload_bytes` together: alpha per step, and bytes over the rate.

        Routes inside and between nodes are busy at the same time, so the slower one counts.
        """
        sent = bytes_sent("all_reduce", self.algorithm, payload_bytes, self.gpus, self.per_node)
        slower = max(sent.inside / (self.inside_gb_per_s * 1e9), sent.between / (self.between_gb_per_s * 1e9))
        return count * steps(self.algorithm, self.gpus, self.per_node) * self.step_s + slower


AllReduceCosts = Callable[[int], AllReduceCost]
"""By count."""


@dataclass(frozen=True)
class FittedLine:
    """alpha and rate at one count, measured: an all_reduce takes alpha_s + bytes sent / rate."""

    gpus: int
    per_node: int
    algorithm: Algorithm
    alpha_s: float  # of one all_reduce, all its steps together
    gb_per_s: float  # of the bytes sent between nodes, or inside one where there is only one

    @property
    def across(self) -> bool:
        """Whether it is of several nodes."""
        return self.gpus > self.per_node


def links_of(machine: Machine, name: str) -> Links:
    """The machine's links.

    Raises:
        TrisectError: its file gives none.
    """
    if machine.links is None:
        raise TrisectError(
            f"config/machines/{name}.yaml: no links, the rates to predict with; add them (docs/model.md), or measure"
            " some counts and run snakemake predict"
        )
    return machine.links


def of_links(links: Links, per_node: int) -> AllReduceCosts:
    """Costs by the machine's file: its rates, and the algorithm that NCCL takes for the image by it."""

    def all_reduce(gpus: int) -> AllReduceCost:
        here = min(gpus, per_node)
        how: Algorithm = TREE if gpus // here in links.tree_nodes else RING
        between = links.network_gb_per_s[how]
        return AllReduceCost(gpus, per_node, how, links.inside_gb_per_s(here), between, links.step_us * 1e-6)

    return all_reduce


def of_lines(lines: Sequence[FittedLine], per_node: Callable[[int], int]) -> AllReduceCosts:
    """Costs by measured lines: at each count those of the nearest line.

    That is the line of the largest count which is not larger, of those over the same route (one node, or several); of
    the smallest count where all are larger; over the other route where there is none. Its algorithm and rate are kept;
    its alpha is kept by the step.

    Args:
        lines: at least one, of 2 GPUs or more.
        per_node: by count, the GPUs of a node.
    """

    def all_reduce(gpus: int) -> AllReduceCost:
        here = per_node(gpus)
        same = [line for line in lines if line.across == (gpus > here)] or lines
        below = [line for line in same if line.gpus <= gpus]
        line = max(below, key=attrgetter("gpus")) if below else min(same, key=attrgetter("gpus"))
        inside = float("inf") if gpus > here else line.gb_per_s
        step_s = line.alpha_s / steps(line.algorithm, line.gpus, line.per_node)
        return AllReduceCost(gpus, here, line.algorithm, inside, line.gb_per_s, step_s)

    return all_reduce


def lines_of(fits: pd.DataFrame) -> list[FittedLine]:
    """A probe's lines, one a count: what NCCL or gloo chose by itself, of the fastest protocol, which large ones take.

    Where nothing says which algorithm that was, a ring is assumed. Counts whose ranks shared cores are left out
    where there are others.

    Args:
        fits: tables.FITS.
    """
    chosen = fits[(fits["algorithm"] == AUTO) & ((fits["reading"] == RING) | (fits["ran"] == TREE))]
    fair = chosen[~chosen["oversubscribed"]]
    fastest = (chosen if fair.empty else fair).sort_values(["gpus", "gb_per_s"]).drop_duplicates("gpus", keep="last")
    return [
        FittedLine(row["gpus"], row["gpus"] // row["nodes"], row["reading"], row["alpha_s"], row["gb_per_s"])
        for row in fastest.to_dict("records")
    ]
