"""The model: whole pieces of work, jitter, and bytes over rates, to times at any count. docs/model.md derives it.

An iteration's section is a sequence of pieces. A piece is compute of every rank, followed by all_reduces in which
all ranks wait for the last one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from trisect.analysis.pop import efficiencies, ratio
from trisect.config.experiment import Experiment
from trisect.config.footprint import require_fit
from trisect.config.machine import Links, Machine
from trisect.config.study_settings import StudyExperiment, Work
from trisect.errors import TrisectError
from trisect.model.allreduce_cost import AllReduceCost, AllReduceCosts, of_links
from trisect.results.tables import MODELLED_TIMES, PREDICTED_QUANTITIES, TOTAL, Values
from trisect.wording import listed

MODELLED = ("section", "gpus", *PREDICTED_QUANTITIES)
"""Columns of `predict`."""


@dataclass(frozen=True)
class Problem:
    """An experiment as the model sees it."""

    name: str
    tiles: int
    operators: int
    unrolled: int  # solver iterations in one iteration of a section
    image_bytes: int
    least_gpus: int
    tile_work: float  # area of all tiles with their overlap over the image's
    sections: dict[str, Work]


@dataclass(frozen=True)
class AllReduce:
    """One all_reduce, or several small ones that follow each other, taken together."""

    payload_bytes: int
    transfer_s: float


@dataclass(frozen=True)
class Piece:
    """Compute without jitter, in seconds by rank, and the all_reduces after it."""

    compute_s: Values
    exchanges: tuple[AllReduce, ...]


Jitter = float | Values
"""Random delay in a stretch of compute, as a share of it: the largest, either way, or the values that may be drawn."""


@dataclass(frozen=True)
class Model:
    """A problem on a machine: all that a prediction follows from."""

    problem: Problem
    all_reduce: AllReduceCosts
    jitter: Mapping[str, Jitter]  # by section


def of_machine(problem: Problem, machine: Machine, links: Links) -> Model:
    """A problem on a machine with these links; of the machine, its node size and jitter are used."""
    jitter: dict[str, Jitter] = dict.fromkeys(problem.sections, machine.compute_jitter)
    return Model(problem, of_links(links, machine.gpus_per_node), jitter)


def problem(
    name: str, experiment: Experiment, work: StudyExperiment, size: str, gpu_memory_gb: float | None = None
) -> Problem:
    """Put an experiment's own file and what the model knows of it together.

    Raises:
        TrisectError: no such size, sections that this experiment does not have, or GPUs of too little memory.
    """
    if size not in experiment.sizes:
        raise TrisectError(f"config/study.yaml: size: {name} has no size {size!r}")
    if sorted(work.sections) != sorted(experiment.sections):
        raise TrisectError(
            f"config/study.yaml: experiments.{name}.sections: give {listed(experiment.sections)},"
            f" not {listed(work.sections) or 'none'}"
        )
    known = outline(name, experiment, size, gpu_memory_gb)
    sections = {section: work.sections[section] for section in experiment.sections}
    return replace(known, sections=sections)


def outline(name: str, experiment: Experiment, size: str, gpu_memory_gb: float | None = None) -> Problem:
    """What an experiment's own file says of a problem: pieces and payload, and sections that do no work yet.

    Raises:
        TrisectError: no number of GPUs of so much memory holds it.
    """
    chosen = experiment.sizes[size]
    return Problem(
        name=name,
        tiles=chosen.tiles,
        operators=experiment.operators,
        unrolled=experiment.unrolled_iterations,
        image_bytes=4 * int(np.prod(chosen.image)),
        least_gpus=require_fit(name, experiment, size, gpu_memory_gb),
        tile_work=chosen.tile_work,
        sections={section: Work() for section in experiment.sections},
    )


def held(pieces: int, ranks: int) -> npt.NDArray[np.int64]:
    """How many of `pieces` each rank holds when they are dealt in turn: shape (ranks,)."""
    return (pieces - np.arange(ranks) + ranks - 1) // ranks


def pieces(problem: Problem, section: str, all_reduce: AllReduceCost) -> list[Piece]:
    """One section of one iteration at the all_reduce's count; without all_reduces on a single GPU.

    Every unrolled iteration computes its operators, then its tiles, with an image all_reduce after each, or with
    one after both where there are too few. All_reduces that are left over, and the small ones, follow at the end.
    """
    work, gpus = problem.sections[section], all_reduce.gpus
    operators = held(problem.operators, gpus) * (work.operators_s / problem.operators)
    tiles = held(problem.tiles, gpus) * (work.tiles_s / problem.tiles)
    kinds = [kind for kind in (operators, tiles) if kind.any()] or [operators]
    if work.image_all_reduces < len(kinds) * problem.unrolled:
        kinds = [np.sum(kinds, axis=0)]
    shares = [(kind + work.repeated_s / len(kinds)) / problem.unrolled for kind in kinds] * problem.unrolled
    if gpus == 1:
        return [Piece(compute, ()) for compute in shares]
    image = AllReduce(problem.image_bytes, all_reduce.transfer_s(problem.image_bytes))
    after: list[tuple[AllReduce, ...]] = [(image,)] * min(len(shares), work.image_all_reduces)
    after += [()] * (len(shares) - len(after))
    after[-1] += (image,) * (work.image_all_reduces - len(shares))
    if work.other_all_reduces:
        seconds = all_reduce.transfer_s(work.other_bytes, work.other_all_reduces)
        after[-1] += (AllReduce(work.other_bytes, seconds),)
    return [Piece(compute, exchanges) for compute, exchanges in zip(shares, after, strict=True)]


def draw(planned: list[Piece], jitter: Jitter, iterations: int, rng: np.random.Generator) -> Values:
    """Compute with jitter: seconds, shape (iterations, pieces, ranks).

    Uniform within +-`jitter` where it is one number, else one of its values each time.
    """
    steady = np.array([piece.compute_s for piece in planned])
    shape = (iterations, *steady.shape)
    delay = jitter * rng.uniform(-1, 1, shape) if isinstance(jitter, float | int) else rng.choice(jitter, shape)
    return steady * (1 + delay)


def times(planned: list[Piece], compute: Values) -> dict[str, float]:
    """MODELLED_TIMES of one section, from `draw`. All ranks enter it together."""
    mean = float(compute.sum(axis=1).mean())
    ends = np.array([bool(piece.exchanges) for piece in planned])
    latest = compute[:, ends].max(axis=2).sum(axis=1).mean() if ends.any() else mean
    wait = float(latest - compute[:, ends].mean(axis=2).sum(axis=1).mean()) if ends.any() else 0.0
    transfer = float(sum(exchange.transfer_s for piece in planned for exchange in piece.exchanges))
    slowest = float(compute.sum(axis=1).max(axis=1).mean())
    return dict(zip(MODELLED_TIMES, (mean + transfer + wait, mean, transfer, wait, slowest), strict=True))


def predict(model: Model, counts: Iterable[int], *, iterations: int = 100, seed: int = 0) -> pd.DataFrame:
    """The model's times and efficiencies at each count: MODELLED, a row a section and TOTAL.

    `cost` is relative to the smallest count. So many `iterations` are averaged, their jitter drawn by `seed`.
    """
    rows = []
    for gpus in sorted(counts):
        rng = np.random.default_rng(seed)
        parts = {}
        for section in model.problem.sections:
            planned = pieces(model.problem, section, model.all_reduce(gpus))
            parts[section] = times(planned, draw(planned, model.jitter[section], iterations, rng))
        parts[TOTAL] = {name: sum(part[name] for part in parts.values()) for name in MODELLED_TIMES}
        rows += [{"section": section, "gpus": gpus, **part} for section, part in parts.items()]
    table = pd.DataFrame(rows)
    table = table.assign(**efficiencies({name: table[name].to_numpy() for name in MODELLED_TIMES}))
    return with_cost(table, table["gpus"].min())[list(MODELLED)]


def with_cost(table: pd.DataFrame, base: int) -> pd.DataFrame:
    """A table of spans with `cost`: GPU time over that at the count `base`; NaN where nothing ran there."""
    first = table[table["gpus"] == base].set_index("section")["span_s"]
    at_base = (base * table["section"].map(first)).to_numpy()
    return table.assign(cost=ratio((table["gpus"] * table["span_s"]).to_numpy(), at_base))
