"""Which algorithm NCCL took for which size, from its own log (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,TUNING).

NCCL logs a line a call on rank 0, older versions on every rank. Its form changed over the versions:

    8 Bytes -> Algo 0 proto 0 time 25.200924
    AllGather: 37756928 Bytes -> Algo 1 proto 2 time 2860.208008
    AllReduce: 4096 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..1}

A rank, a timestamp or a host may come before it; ranks that share a file can be joined within a line or cut.
"""

import re

import pandas as pd

UNKNOWN_ALGORITHM = "unknown"
"""Where no log says which algorithm ran."""

TUNING = {
    "op": "str",  # as in tables.COLLECTIVES; "" where the form names none
    "bytes": "int64",
    "algorithm": "str",  # ring, tree, collnet_direct, ...
    "protocol": "str",  # ll, ll128, simple
    "count": "int64",  # of lines
    "nranks": "int64",  # of the log's largest communicator; -1 where no line says so
    "nodes": "int64",
}

_ALGORITHMS = ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat")  # by NCCL's number
_PROTOCOLS = ("ll", "ll128", "simple")
_LINE = re.compile(
    r"(?:\b([A-Z][A-Za-z]+): )?\b(\d+) Bytes -> Algo (\w+) proto (\w+)"
    r" (?:time \d+\.\d|channel\{Lo\.\.Hi\}=\{\d+\.\.\d+\})"
)
_BEGUN = re.compile(r"\d+ Bytes -")
_SIZE = re.compile(r"\bn[rR]anks[ =](\d+)(?: nNodes (\d+))?")


def read_tuning(text: str) -> tuple[pd.DataFrame, int]:
    """The tuning lines of a log, or of several put together.

    Returns:
        TUNING, a row for each kind of line, and how many lines were cut before their end and left out.
    """
    found = [
        (_snake(op), int(size), _named(algorithm, _ALGORITHMS), _named(protocol, _PROTOCOLS))
        for op, size, algorithm, protocol in _LINE.findall(text)
    ]
    worlds = [(int(ranks), int(nodes or -1)) for ranks, nodes in _SIZE.findall(text)]
    nranks, nodes = max(worlds, default=(-1, -1))
    frame = pd.DataFrame(found, columns=["op", "bytes", "algorithm", "protocol"])
    table = frame.value_counts(sort=False).rename("count").reset_index().assign(nranks=nranks, nodes=nodes)
    return table[list(TUNING)].astype(TUNING), len(_BEGUN.findall(text)) - len(found)


def algorithm_for(tuning: pd.DataFrame, op: str, payload_bytes: int) -> str:
    """The algorithm of a collective of this size, all where it logs several, UNKNOWN_ALGORITHM where none."""
    same = tuning[tuning["op"].isin(["", op]) & (tuning["bytes"] == payload_bytes)]
    return ", ".join(sorted(same["algorithm"].unique())) or UNKNOWN_ALGORITHM


def ran_for(tuning: pd.DataFrame, op: str, payload_bytes: int) -> tuple[str, str]:
    """Algorithm and protocol of a collective of this size, each UNKNOWN_ALGORITHM where the log has none or several."""
    same = tuning[tuning["op"].isin(["", op]) & (tuning["bytes"] == payload_bytes)]
    algorithm, protocol = (
        str(names[0]) if len(names) == 1 else UNKNOWN_ALGORITHM
        for names in (same["algorithm"].unique(), same["protocol"].unique())
    )
    return algorithm, protocol


def _named(word: str, names: tuple[str, ...]) -> str:
    """A number by NCCL's own order, a name in lower case."""
    if word.isdigit():
        return names[int(word)] if int(word) < len(names) else f"number {word}"
    return word.lower()


def _snake(op: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", op).lower()
