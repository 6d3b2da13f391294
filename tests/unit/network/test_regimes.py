"""Messages against a known crossover."""

import math

import pandas as pd
import pytest

from trisect.network.nccl_log import read_tuning
from trisect.network.regimes import MESSAGES, messages, regime
from trisect.results.tables import FITS

KB = 1024


def fits(*lines):
    """(gpus, algorithm, protocol, smallest, largest, crossover), all of rings."""
    names = ["gpus", "algorithm", "protocol", "smallest_bytes", "largest_bytes", "crossover_bytes"]
    return pd.DataFrame(lines, columns=names).assign(ran="ring").reindex(columns=list(FITS))


def collectives(*rows):
    """(iteration, section, op, bytes)."""
    return pd.DataFrame(rows, columns=["iteration", "section", "op", "bytes"])


@pytest.mark.parametrize(
    ("payload", "means"),
    [
        (1, "latency-bound"),
        (1000, "latency-bound"),  # a third of the crossover: 3/4 latency
        (1001, "between"),
        (3000, "between"),
        (8999, "between"),
        (9000, "bandwidth-bound"),  # three times: 3/4 bytes
        (1e9, "bandwidth-bound"),
    ],
)
def test_regime_at_its_thresholds(payload, means):
    assert regime(payload, 3000) == means


def test_no_crossover_is_unknown():
    assert regime(1000, math.nan) == "unknown"


RUN = collectives(
    (1, "gradient", "broadcast", 8),
    (1, "gradient", "all_reduce", 8),
    (1, "gradient", "all_reduce", 900 * KB),
    (1, "denoiser", "all_reduce", 900 * KB),
    (1, "denoiser", "all_reduce", 900 * KB),
    (2, "gradient", "all_reduce", 8),
    (2, "gradient", "all_reduce", 900 * KB),
    (2, "denoiser", "all_reduce", -1),
)


def test_each_message_of_a_run_is_counted_and_placed():
    table = messages(RUN, fits((2, "chosen", "gloo", KB, KB * KB, 100 * KB)), 2)
    assert tuple(table.columns) == MESSAGES
    assert table[["section", "payload_bytes", "count", "regime"]].to_numpy().tolist() == [
        ["gradient", 8, 1.0, "latency-bound"],
        ["gradient", 900 * KB, 1.0, "bandwidth-bound"],
        ["denoiser", 900 * KB, 1.0, "bandwidth-bound"],
    ]
    assert table["latency_share"].tolist() == pytest.approx([100 * KB / (100 * KB + 8), 0.1, 0.1])


def test_a_count_that_was_not_probed_is_unknown():
    for probed in (fits((4, "chosen", "gloo", KB, KB * KB, 100)), fits((2, "tree", "ll", KB, KB * KB, 100)), fits()):
        table = messages(RUN, probed, 2)
        assert set(table["regime"]) == {"unknown"}
        assert table["crossover_bytes"].isna().all()


TWO = fits((2, "chosen", "ll", KB, 64 * KB, 30 * KB), (2, "chosen", "simple", 128 * KB, KB * KB, 300 * KB))


def test_the_fit_whose_sizes_reach_nearest_counts():
    assert messages(RUN, TWO, 2)["protocol"].tolist() == ["ll", "simple", "simple"]


def test_the_run_s_own_log_decides():
    log = f"AllReduce: {900 * KB} Bytes -> Algo RING proto LL channel{{Lo..Hi}}={{0..1}}\n"
    table = messages(RUN, TWO, 2, read_tuning(log)[0])
    assert table["crossover_bytes"].tolist() == [30 * KB] * 3  # the 8 bytes are not in the log
