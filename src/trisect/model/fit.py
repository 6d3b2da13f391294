"""From measured counts to a model of all counts: work by whole pieces, jitter, messages, and what those cost.

docs/model.md derives it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.optimize import nnls
from scipy.special import fdtri

from trisect import wording
from trisect.config.study_settings import Work
from trisect.errors import TrisectError
from trisect.model.allreduce_cost import AllReduceCosts, FittedLine, of_lines
from trisect.model.predict import Jitter, Model, Problem, Values, held, pieces
from trisect.network.byte_rules import RING, TREE, Algorithm
from trisect.network.latency_bandwidth import sent_share
from trisect.results.notes import Note, note

SMALLEST = 2
"""How many counts are fitted where none are asked for: the smallest."""

SURE = 0.95
"""Of the F test by which a second kind of work is believed."""

_HOLDS = {"gradient": ("operators",), "denoiser": ("tiles",)}
"""Pieces that a section computes; both kinds where it is not named, the tiles' first."""


@dataclass(frozen=True)
class Measured:
    """One measured count."""

    gpus: int
    per_node: int
    table: pd.DataFrame  # tables.RUN_DECOMPOSITION
    ranks: pd.DataFrame  # tables.RANKS
    collectives: pd.DataFrame  # tables.PAIRED_COLLECTIVES
    algorithm: str  # that NCCL took for the largest all_reduce; any other word than ring and tree is read as a ring


@dataclass(frozen=True)
class Fitted:
    """What measured counts say."""

    model: Model
    lines: tuple[FittedLine, ...]  # latency and rate of messages, by count; none where `all_reduce` was given
    notes: tuple[Note, ...]  # what the counts could not tell, and how well they are met


def counts_to_fit(oversubscribed: Mapping[int, bool], asked: Sequence[int] | None) -> list[int]:
    """Which of the measured counts are fitted.

    Those asked for that the problem fits on. Where that is none: the SMALLEST (so many) whose ranks had cores of their
    own, and the smallest of 2 or more where there is none among them, since at 1 nothing is transferred.

    Args:
        oversubscribed: by measured count, whether its ranks shared cores.
        asked: counts; those below all that are measured are left out.

    Raises:
        TrisectError: a count that was not measured.
    """
    counts = sorted(oversubscribed)
    chosen = sorted({n for n in asked or () if n >= counts[0]})
    for n in chosen:
        if n not in oversubscribed:
            raise TrisectError(
                f"predict.fit: {n} is not measured; fit {wording.listed(counts)}, or add it to `gpus` and measure it"
            )
    if not chosen:
        chosen = [n for n in counts if not oversubscribed[n]][:SMALLEST]
        if not any(n > 1 for n in chosen):
            chosen += [n for n in counts if n > 1][:1]
    return chosen or counts[:1]


def fit(
    problem: Problem,
    runs: Sequence[Measured],
    per_node: Callable[[int], int],
    *,
    all_reduce: AllReduceCosts | None = None,
    jitter: float | None = None,
) -> Fitted:
    """The model that measured counts give.

    Args:
        problem: from `predict.outline`; its sections' work is what is found.
        runs: one or more counts, each once.
        per_node: by count, the GPUs of a node.
        all_reduce: what all_reduces cost; None takes it from the transfers of `runs`.
        jitter: as in a machine's file; None takes it from how compute varied.

    Raises:
        TrisectError: a run lacks a section or ranks, or nothing was transferred and no `all_reduce` is given.
    """
    sending = max(runs, key=lambda run: 0 if _known(run).empty else run.gpus)  # the largest count with known payload
    chosen = _payload(problem, sending)
    lines = () if all_reduce else _lines(runs)
    works, jitters, notes = {}, {}, []
    for section in problem.sections:
        work, said = _compute(chosen, section, runs)
        works[section] = work.model_copy(update=_messages(chosen, section, sending))
        notes += said
    if _known(sending).empty:
        notes.append(note("no_messages"))
    chosen = replace(chosen, sections=works)
    cost = all_reduce or of_lines(lines, per_node)
    for section in problem.sections:
        stretches = len(pieces(chosen, section, cost(max(run.gpus for run in runs))))
        jitters[section] = jitter if jitter is not None else _jitter(section, runs, stretches)
    if jitter is None and all(isinstance(found, float) for found in jitters.values()):
        notes.append(note("no_jitter"))
    return Fitted(Model(chosen, cost, jitters), lines, tuple(notes))


def _compute(problem: Problem, section: str, runs: Sequence[Measured]) -> tuple[Work, list[Note]]:
    """compute(rank) = repeated + operators(rank) / K + tiles(rank) / T by non-negative least squares, relative to each
    rank's mean over iterations; and what to know about it."""
    counts = {"operators": problem.operators, "tiles": problem.tiles}
    seconds = [_by_rank(run, section).mean(axis=0) for run in runs]
    columns = {
        kind: np.concatenate([held(counts[kind], run.gpus) / counts[kind] for run in runs])
        for kind in _HOLDS.get(section, ("tiles", "operators"))
    }
    columns["repeated"] = np.ones(sum(run.gpus for run in runs))
    measured = np.maximum(np.concatenate(seconds), 1e-9)
    shares = {kind: column / measured for kind, column in columns.items()}
    told: list[str] = []
    for kind in columns:
        if _is_told([shares[one] for one in told], shares[kind], by_chance=len(runs) == 1):
            told.append(kind)
    design = np.stack([shares[kind] for kind in told], axis=1)
    found, _ = nnls(design, np.ones(len(measured)))
    error = design @ found - 1
    worst = int(np.argmax(np.abs(error)))
    at = np.repeat([run.gpus for run in runs], [run.gpus for run in runs])[worst]
    notes = [note("fit_cannot_tell", section=section, kind=kind, taken=told[0]) for kind in columns if kind not in told]
    notes.append(note("fit_misses", section=section, worst=float(abs(error[worst])), gpus=int(at)))
    seconds_of = {f"{kind}_s": float(value) for kind, value in zip(told, found, strict=True)}
    return Work().model_copy(update=seconds_of), notes


def _is_told(told: Sequence[Values], column: Values, *, by_chance: bool) -> bool:
    """Whether the fit tells another column from those it has.

    Ranks of one count differ by a piece or none, and as much by chance: there, a column must also lower the misfit by
    more than chance does (F test at SURE).
    """
    design = np.stack([*told, column], axis=1)
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return False
    if not told or not by_chance:
        return True
    free = len(column) - design.shape[1]
    with_it, without = (nnls(part, np.ones(len(column)))[1] ** 2 for part in (design, design[:, :-1]))
    return free > 0 and bool((without - with_it) * free > fdtri(1, free, SURE) * with_it)


def _by_rank(run: Measured, section: str) -> Values:
    """Compute in seconds, shape (iterations, ranks)."""
    rows = run.ranks[run.ranks["section"] == section]
    table = rows.pivot(index="iteration", columns="rank", values="compute_s").dropna()
    if table.shape[1] != run.gpus or table.empty:
        raise TrisectError(
            f"{section}: {table.shape[1]} ranks at {run.gpus} GPUs in ranks.parquet; decompose that run again"
        )
    return table.to_numpy()


def _jitter(section: str, runs: Sequence[Measured], stretches: int) -> Jitter:
    """How a rank's compute differs from its mean over iterations, as a share; of ranks with half the most or more.

    A section of several stretches varies less than each of them does, as independent ones do: by the root of how many.
    """
    found = []
    for run in [run for run in runs if run.gpus > 1] or runs:
        seconds = _by_rank(run, section)
        iterations, mean = len(seconds), seconds.mean(axis=0)
        if iterations > 1:
            busy = mean >= mean.max() / 2
            apart = (seconds[:, busy] / mean[busy] - 1) * np.sqrt(iterations / (iterations - 1))
            found.append(_of_ranks_alone(apart).ravel())
    if not found:
        return 0.0
    factors = np.maximum(1 + np.concatenate(found) * np.sqrt(stretches), 0)  # no compute below nothing
    return factors / factors.mean() - 1


def _of_ranks_alone(apart: Values) -> Values:
    """Without what all ranks have in common in an iteration, which makes nobody wait: shape (iterations, ranks).

    The mean over n ranks varies by var(common) + var(own) / n. The part of it that own chance does not explain is taken
    out, and what goes with it of the ranks' own is given back.
    """
    ranks = apart.shape[1]
    common = apart.mean(axis=1, keepdims=True)
    varies = float(np.mean(common**2))
    if ranks < 2 or varies == 0:
        return apart
    own = max(float(np.mean(apart**2)) - varies, 0.0) / (ranks - 1)
    share = max(1 - own / varies, 0.0)
    return (apart - share * common) / np.sqrt(1 - share * (2 - share) / ranks)


def _known(run: Measured) -> pd.DataFrame:
    """The collectives within sections whose payload is known."""
    return run.collectives[run.collectives["bytes"] > 0]


def _payload(problem: Problem, run: Measured) -> Problem:
    """With the image's payload as it was sent: the file's own where it was, else the largest."""
    sizes = _known(run)["bytes"]
    if sizes.empty or (sizes == problem.image_bytes).any():
        return problem
    return replace(problem, image_bytes=int(sizes.max()))


def _messages(problem: Problem, section: str, run: Measured) -> dict[str, int]:
    """Messages of one section as Work has them; small ones are read as all_reduces."""
    every = _known(run)
    if every.empty:
        return {}
    rows, iterations = every[every["section"] == section], run.collectives["iteration"].nunique()
    image = (rows["op"] == "all_reduce") & (rows["bytes"] == problem.image_bytes)
    return {
        "image_all_reduces": round(image.sum() / iterations),
        "other_all_reduces": round((~image).sum() / iterations),
        "other_bytes": round(rows.loc[~image, "bytes"].sum() / iterations),
    }


def _lines(runs: Sequence[Measured]) -> tuple[FittedLine, ...]:
    lines = tuple(_line(run) for run in runs if run.gpus > 1 and len(_known(run)))
    if not lines:
        counts = wording.counts([run.gpus for run in runs], "GPU")
        raise TrisectError(
            f"nothing of known size is transferred at {counts}, so that no rate follows;"
            " measure 2 or more GPUs, probe them, or give the machine's file links"
        )
    return lines


def _line(run: Measured) -> FittedLine:
    """alpha + bytes / rate through every message of one count by least squares, so that their total is met.

    Without alpha where all are of one size.
    """
    rows = _known(run)
    how: Algorithm = TREE if run.algorithm == TREE else RING
    moved = rows["bytes"].to_numpy() * sent_share(run.gpus, run.gpus // min(run.gpus, run.per_node), how)
    ones = np.ones(len(rows)) if rows["bytes"].nunique() > 1 else np.zeros(len(rows))
    (alpha_s, s_per_largest), _ = nnls(np.stack([ones, moved / moved.max()], axis=1), rows["transfer_s"].to_numpy())
    rate = moved.max() / s_per_largest / 1e9 if s_per_largest > 0 else float("inf")
    return FittedLine(run.gpus, run.per_node, how, float(alpha_s), float(rate))
