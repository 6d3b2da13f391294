"""What is run on the network, and how its results are found again."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from trisect.analysis.decomposition import Decomposition
from trisect.config.experiment import Experiment, Size
from trisect.config.machine import AUTO, Machine, ProbeSettings
from trisect.config.plan import Sweep
from trisect.config.settings import Iterations, Settings
from trisect.launch.job import Job
from trisect.launch.run_job import run_job
from trisect.network.implied_rates import implied
from trisect.pipeline.decompose import of_run, write_decomposition
from trisect.results.layout import Layout, RunLayout
from trisect.results.record import RunRecord

from . import ranks
from .network import BURST_BYTES, FRAME_BYTES, SEGMENT_BYTES, Network, address

RATES_MBIT_PER_S = [100, 200, 400]
BASE_MBIT_PER_S = 200
"""Of everything that is not about the rate."""
SLOW_S = 0.4
ITERATIONS = Iterations(warmup=0, measured=7, unprofiled=1)
MACHINE = Machine(
    launcher="local",
    device="cpu",
    backend="gloo",
    gpus_per_node=1,
    environment={"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "eth0", "MASTER_ADDR": address(1)},
    collective_timeout_s=60,
    probe=ProbeSettings(smallest_bytes=1 << 14, largest_bytes=1 << 22, repetitions=10),
)


def size(height: int, width: int, patch: int, check_at: str | None = "tiny") -> Size:
    return Size(
        image=[3, height, width],
        patch=patch,
        overlap=8,
        denoiser_channels=[4, 8, 16, 32],
        denoiser_blocks=1,
        check_at=check_at,
    )


EXPERIMENT = Experiment(
    problem="super_resolution",
    mode="inference",
    operators=5,  # with 9 tiles: no count of hosts can share either out evenly
    sizes={
        "tiny": size(48, 48, 16, None),
        "quarter": size(256, 256, 176),
        "half": size(256, 512, 176),
        "base": size(512, 512, 176),
    },
)


@dataclass(frozen=True)
class Case:
    """A run by the worker, at each number of hosts that it is ordered for."""

    name: str
    size: str = "base"
    mbit_per_s: int = BASE_MBIT_PER_S
    slow: bool = False
    """The last rank sleeps in each denoiser step."""
    speed: float | None = None
    """As ranks.Order has it."""

    def order(self, hosts: int) -> ranks.Order:
        """For so many hosts."""
        return ranks.Order(
            folder=str(Layout(Path()).run(self.name, hosts).folder),
            payload=sweep(self.name, self.size).run(self.name, hosts).payload(),
            mbit_per_s=self.mbit_per_s,
            slow_s={str(hosts - 1): SLOW_S} if self.slow else {},
            speed=self.speed,
        )


def sweep(name: str, size: str = "base") -> Sweep:
    """The configuration of one case."""
    settings = Settings(size=size, experiments=[name], gpus=list(ORDERED), iterations=ITERATIONS)
    return Sweep(settings=settings, machine=MACHINE, experiments={name: EXPERIMENT})


BY_RATE = {mbit: Case(f"rate-{mbit}", mbit_per_s=mbit) for mbit in RATES_MBIT_PER_S}
BASE = BY_RATE[BASE_MBIT_PER_S]
BY_SIZE = {"quarter": Case("quarter", size="quarter"), "half": Case("half", size="half"), "base": BASE}
SLOW = Case("slow", slow=True)
ALIKE = Case("alike", speed=1 / 8)
EVERY = [*BY_RATE.values(), BY_SIZE["quarter"], BY_SIZE["half"], SLOW, ALIKE]
ORDERED = {2: EVERY, 4: EVERY, 8: [ALIKE]}
"""By number of hosts, what one launch runs, so that torch is imported only once."""
PROBED_HOSTS = 4
"""Two would have no latency to fit: the burst saves them more than it."""
PROBED_MBIT_PER_S = 400
PROBED_BURST_BYTES = 10_000
"""A frame and little more: less than any probed size sends, so that a burst shortens all by the same time."""


def probe_order() -> ranks.Order:
    """As `snakemake probe` does it."""
    return ranks.Order(
        folder=str(Layout(Path()).probe(PROBED_HOSTS, AUTO).folder),
        payload=sweep(BASE.name).probe(PROBED_HOSTS, AUTO).payload(),
        mbit_per_s=PROBED_MBIT_PER_S,
        burst_bytes=PROBED_BURST_BYTES,
        target="trisect.worker.probe_worker:work",
    )


def launched(hosts: int, folder: Path) -> Layout:
    """Launch ranks on so many hosts, and decompose what they ran."""
    orders = [case.order(hosts) for case in ORDERED[hosts]] + [probe_order()] * (hosts == PROBED_HOSTS)
    with Network(hosts) as network, pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        payload = ranks.payload(network.pids, orders)
        job = Job(f"network of {hosts}", f"{ranks.__name__}:work", payload, hosts, ITERATIONS.measured)
        run_job(job, MACHINE, RunLayout(folder), print)
    return Layout(folder)


def decomposed(layout: Layout, case: Case, hosts: int) -> Decomposition:
    """As the rule `decompose` does it."""
    run = layout.run(case.name, hosts)
    record = RunRecord.read(run.record)
    annotate = partial(of_run, record=record)
    return write_decomposition(run.traces, run, sections=record.sections, annotate=annotate)


def rates(found: Decomposition) -> pd.DataFrame:
    """tables.RATES of a ring, from the median iteration: a test machine has other work now and then.

    The product's own rows are of the mean; they are in `mean_gb_per_s`.
    """
    medians = found.iterations.groupby("section")["transfer_s"].median()
    hosts = int(found.table["gpus"].iloc[0])
    of_mean = implied(found.table, {hosts: 1}, {})
    table = implied(found.table.assign(transfer_s=found.table["section"].map(medians)), {hosts: 1}, {})
    table = table.assign(mean_gb_per_s=of_mean["gb_per_s"])
    return table[table["reading"] == "ring"].set_index("section")


def wire_s(sent_bytes: float, mbit_per_s: int) -> float:
    """What a network of this rate needs for bytes of one all_reduce: with headers, and the first burst for nothing."""
    return (sent_bytes * FRAME_BYTES / SEGMENT_BYTES - BURST_BYTES) / (mbit_per_s * 1e6 / 8)
