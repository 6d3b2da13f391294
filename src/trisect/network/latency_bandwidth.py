"""Latency and rate of all_reduces: seconds = alpha_s + bytes sent / rate, fitted to what a probe measured.

Times span five decades and their errors are shares of them, so the logarithm of the time is fitted, by least
squares in log(alpha) and log(1 / rate). 95 % intervals are those of Student's t with n - 2 degrees of freedom around
these logarithms: neither latency nor rate can come out negative. Both together are one line per protocol: NCCL changes
its protocol with the size, and each has a latency and a rate of its own. docs/probe.md.
"""

import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd

from trisect.network.byte_rules import GLOO, RING, Algorithm, assumed_algorithms, bytes_sent
from trisect.network.nccl_log import UNKNOWN_ALGORITHM, ran_for
from trisect.network.probe_statistics import ISOLATED
from trisect.results.notes import Note, note
from trisect.results.tables import FITS, Values, with_bounds

LEAST_SIZES = 3
LEAST_SHARE = 0.05
"""Of the time at some size, what latency and bytes must each make up; else the sizes do not tell them apart."""
_KEY = ["gpus", "nodes", "algorithm", "ran", "protocol"]


class NoFitError(Exception):
    """Times that no latency and rate can be told from; `why` is a note."""

    def __init__(self, why: Note) -> None:
        super().__init__(why.kind)
        self.why = why


def fit(sent_bytes: Values, seconds: Values) -> dict[str, float]:
    """The line through measured times: `alpha_s` and `gb_per_s` with bounds, `residual` and `r2`, as FITS has them.

    Args:
        sent_bytes: by one GPU inside a node, by one node between nodes; shape (sizes,).
        seconds: of each.

    Raises:
        NoFitError: fewer than LEAST_SIZES sizes, or latency, or bytes, make up next to nothing of every time.
    """
    sizes = len(np.unique(sent_bytes))
    if sizes < LEAST_SIZES:
        raise NoFitError(note("too_few_sizes", sizes=sizes, needed=LEAST_SIZES))
    from scipy import optimize, stats  # takes half a second to import, which commands without a fit need not wait for

    def line(sent: Values, log_alpha: float, log_beta: float) -> Values:
        return np.logaddexp(log_alpha, log_beta + np.log(sent))

    begin = np.log([seconds.min(), seconds.max() / sent_bytes.max()])
    try:
        with warnings.catch_warnings():  # where no covariance comes out, one of the refusals below says why
            warnings.simplefilter("ignore", optimize.OptimizeWarning)
            (log_alpha, log_beta), covariance = optimize.curve_fit(line, sent_bytes, np.log(seconds), p0=begin)
    except RuntimeError:  # no convergence: one of the two has gone to zero
        raise NoFitError(note("no_line")) from None
    latency = np.exp(log_alpha - line(sent_bytes, log_alpha, log_beta))
    if latency.max() < LEAST_SHARE:
        raise NoFitError(note("no_latency"))
    if 1 - latency.min() < LEAST_SHARE:
        raise NoFitError(note("no_rate"))
    residual = np.log(seconds) - line(sent_bytes, log_alpha, log_beta)
    width = stats.t.ppf(0.975, len(seconds) - 2) * np.sqrt(np.diag(covariance))
    ends = np.array([0, -1, 1])
    lines = np.exp(log_alpha + width[0] * ends), np.exp(-log_beta + width[1] * ends) / 1e9
    spread = np.log(seconds) - np.log(seconds).mean()
    found = dict(zip(with_bounds(("alpha_s", "gb_per_s")), map(float, np.concatenate(lines)), strict=True))
    r2 = float(1 - (residual @ residual) / (spread @ spread))
    return found | {"residual": float(np.abs(np.expm1(residual)).max()), "r2": r2}


def fits(
    probe: pd.DataFrame, tuning: pd.DataFrame | None, nccl_version: str, *, oversubscribed: bool = False
) -> tuple[pd.DataFrame, list[Note]]:
    """The lines of one probe: one for each algorithm and protocol that ran.

    Args:
        probe: tables.ALL_REDUCE of one count and algorithm.
        tuning: nccl_log.TUNING of that probe; None where it left no log.
        nccl_version: "" where NCCL did not run.
        oversubscribed: whether ranks shared cores.

    Returns:
        FITS, without a row for one GPU, which sends nothing; and what could not be fitted, as notes.
    """
    isolated = probe[(probe["cadence"] == ISOLATED) & (probe["gpus"] > 1)]
    ran = [_ran(backend, tuning, size) for backend, size in isolated[["backend", "payload_bytes"]].to_numpy()]
    isolated = isolated.assign(ran=[how for how, _ in ran], protocol=[protocol for _, protocol in ran])
    rows, refused = [], []
    for _, sizes in isolated.groupby(["ran", "protocol"], sort=False):
        key = {str(name): value for name, value in sizes[_KEY].iloc[0].items()}
        of_probe = key | {"nccl_version": nccl_version or "none", "oversubscribed": oversubscribed}
        try:
            rows += [of_probe | line for line in _lines(sizes)]
        except NoFitError as mistake:
            about = {name: str(key[name]) for name in ("algorithm", "ran", "protocol")}
            refused.append(note("no_fit", gpus=int(key["gpus"]), **about, why=mistake.why.model_dump()))
    return pd.DataFrame(rows, columns=list(FITS)), refused


def _ran(backend: str, tuning: pd.DataFrame | None, payload_bytes: int) -> tuple[str, str]:
    """Algorithm and protocol of an all_reduce. gloo knows no protocols; its all_reduce is a ring at any size."""
    if backend == GLOO:
        return RING, GLOO
    return (UNKNOWN_ALGORITHM, UNKNOWN_ALGORITHM) if tuning is None else ran_for(tuning, "all_reduce", payload_bytes)


def _lines(sizes: pd.DataFrame) -> Iterator[dict[str, object]]:
    """The fit by the bytes of the algorithm that ran, or by those of both where it has no byte rule."""
    gpus, nodes, ran = int(sizes["gpus"].iloc[0]), int(sizes["nodes"].iloc[0]), str(sizes["ran"].iloc[0])
    payload = sizes["payload_bytes"].to_numpy(float)
    for assumed in assumed_algorithms(ran):
        share = sent_share(gpus, nodes, assumed)
        found = fit(payload * share, sizes["median_s"].to_numpy(float))
        yield found | {
            "reading": assumed,
            "crossover_bytes": found["alpha_s"] * found["gb_per_s"] * 1e9 / share,
            "sizes": len(payload),
            "smallest_bytes": int(payload.min()),
            "largest_bytes": int(payload.max()),
        }


def sent_share(gpus: int, nodes: int, algorithm: Algorithm) -> float:
    """Bytes that an all_reduce sends over its slowest route, per byte of payload."""
    sent = bytes_sent("all_reduce", algorithm, 1.0, gpus, gpus // nodes)
    return sent.between if nodes > 1 else sent.inside
