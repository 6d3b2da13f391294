"""One rank of a probe: all_reduces from small to large in two cadences, each result checked."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch.distributed as dist
from deepinv.distributed import DistributedContext

from trisect.config.plan import ProbeRun
from trisect.errors import TrisectError
from trisect.host import write_whole
from trisect.network.probe_statistics import ISOLATED, STREAMED, Cadence, summary
from trisect.results.layout import ProbeLayout
from trisect.results.notes import Note, note
from trisect.results.record import ProbeRecord, RankPlace
from trisect.results.tables import ALL_REDUCE, as_table
from trisect.worker import correctness, device, memory, provenance
from trisect.worker.all_reduce_timing import Timed, isolated, streamed
from trisect.worker.exact_sums import BUFFERS, Sum, longest_chain
from trisect.worker.process_group import gather, join, progress_of

WARMUP = 2
"""All_reduces before the isolated ones of each size, not counted."""
FEWEST_REPETITIONS = 5
"""Fewest all_reduces of a size and cadence; a size for which there is no time for these is left out."""
MEMORY_SHARE = 0.5
"""Of the free memory, what the buffers of all ranks that share it may take."""
SMALL_SHARE = 0.01
"""Of the time, what any size may take; beyond it, a size's share of the time left is its share of the bytes left."""


def work(payload: str, folder: Path) -> None:
    """Probe as this rank; rank 0 writes the table, and the record last.

    `payload` is `ProbeRun.payload()`, the same for every rank.

    Raises:
        TrisectError: the device, the backend or the placement is not as it must be, or a result is wrong.
    """
    run = ProbeRun.model_validate_json(payload)
    files = ProbeLayout(folder)
    device.require(run.device)
    with join(run) as ctx:
        correctness.require_agreement(ctx, "configurations", run.sha256())
        places = gather(provenance.rank_place(ctx.rank, ctx.device), run.gpus)
        hosts = provenance.cores_by_host(gather(provenance.host_and_cores(), run.gpus))
        probe = Probe(run, ctx, places, progress_of(ctx.rank, files.progress))
        probe.measure()
        if ctx.rank == 0:
            write_whole(files.all_reduce, as_table(probe.rows, ALL_REDUCE).to_csv(index=False))
            probe.record(provenance.of_launch(run, places, hosts)).write(files.record)
        dist.barrier()


class Probe:
    """The sizes of one probe, one after the other. What ranks decide, they decide from what all of them know."""

    def __init__(
        self, run: ProbeRun, ctx: DistributedContext, places: list[RankPlace], progress: Callable[[str], None]
    ) -> None:
        self.run, self.ctx, self.places, self.progress = run, ctx, places, progress
        self.nodes = len({place.host for place in places})
        self.chain = longest_chain(run.gpus)
        self.memory_bytes = min(gather(self._memory_bytes(), run.gpus))
        self.begun = time.perf_counter()
        self.rows: list[dict[str, object]] = []
        self.measured: list[int] = []
        self.left_out: Note | None = None
        self.checked = 0

    def _memory_bytes(self) -> int:
        """Largest payload that this rank's share of the free memory holds."""
        here = self.places[self.ctx.rank].host
        sharing = 1 if self.ctx.device.type == "cuda" else sum(place.host == here for place in self.places)
        return int(memory.free_bytes(self.ctx.device) * MEMORY_SHARE / sharing / BUFFERS)

    def measure(self) -> None:
        """Every size, as far as memory and time go.

        Raises:
            TrisectError: a result is wrong, no size fits, or there are more ranks than a sum is exact for.
        """
        if self.chain == 0:
            raise TrisectError(f"probe: over {self.run.gpus} ranks float32 is not exact enough to check; use fewer")
        sizes = self.run.payload_bytes
        needed_s = 0.0
        for k, size in enumerate(sizes):
            left_s = self.run.seconds - max(gather(time.perf_counter() - self.begun, self.run.gpus))
            if size > self.memory_bytes:
                self.left_out = note("probe_memory", first_bytes=size, memory_bytes=self.memory_bytes)
            elif needed_s > left_s:
                self.left_out = note("probe_time", first_bytes=size, limit_s=self.run.seconds)
            if self.left_out:
                break
            self.progress(f"{size} bytes, size {k + 1} of {len(sizes)}")
            allotted_s = max(left_s * size / sum(sizes[k:]), SMALL_SHARE * self.run.seconds)
            each_s = self._size(size, allotted_s)
            self.measured.append(size)
            needed_s = 2 * each_s * (WARMUP + 2 * FEWEST_REPETITIONS)  # the next is twice as large
        if not self.measured:
            raise TrisectError(
                f"probe: no size was measured, memory allows for {self.memory_bytes} bytes; lower probe.smallest_bytes"
            )

    def _size(self, payload_bytes: int, allotted_s: float) -> float:
        """Both cadences of one size; the seconds that a repetition takes with filling and checking."""
        mine = Sum(payload_bytes, self.ctx.rank, self.run.gpus, self.ctx.device)
        begun = time.perf_counter()
        warmup = self._checked("isolated", mine, isolated(mine, WARMUP))
        each_s = max(gather((time.perf_counter() - begun) / WARMUP, self.run.gpus))
        count = max(FEWEST_REPETITIONS, min(int(allotted_s / 2 / each_s), self.run.repetitions))
        found = self._checked("isolated", mine, isolated(mine, count))
        self._add(ISOLATED, mine, found, [one.times_s for one in warmup])
        if self.chain > 1:
            links = min(self.chain, count + 1)
            found = self._checked("streamed", mine, streamed(mine, -(-count // (links - 1)), links))
            self._add(STREAMED, mine, found, [one.uncounted_s for one in found])
        return each_s

    def _checked(self, cadence: str, mine: Sum, timed: Timed) -> list[Timed]:
        """What every rank timed.

        Raises:
            TrisectError: on every rank, if a result on any of them is wrong.
        """
        by_rank = gather(timed, self.run.gpus)
        for rank, one in enumerate(by_rank):
            wrong = [values for values in one.wrong_values if values]
            if wrong:
                raise TrisectError(
                    f"all_reduce of {mine.payload_bytes} bytes ({cadence}): {len(wrong)} of {len(one.wrong_values)}"
                    f" results on rank {rank} are wrong, in up to {max(wrong)} values;"
                    " look for a faulty device or link, no time of this probe was kept"
                )
        self.checked += len(timed.times_s) + len(timed.uncounted_s)
        return by_rank

    def _add(self, cadence: Cadence, mine: Sum, found: list[Timed], warmup_s: list[list[float]]) -> None:
        """A row of tables.ALL_REDUCE."""
        statistics = summary(cadence, mine.payload_bytes, self.run.gpus, [one.times_s for one in found])
        self.rows.append(
            {
                "gpus": self.run.gpus,
                "nodes": self.nodes,
                "backend": self.run.backend,
                "algorithm": self.run.algorithm,
                "cadence": cadence,
                "payload_bytes": mine.payload_bytes,
                **statistics,
                "wrong": sum(values > 0 for one in found for values in one.wrong_values),
                "warmup_s": sum(map(max, zip(*warmup_s, strict=True))),  # each by its slowest rank
            }
        )

    def record(self, provenance: dict[str, Any]) -> ProbeRecord:
        """Everything known about the probe."""
        return ProbeRecord(
            **provenance,
            algorithm=self.run.algorithm,
            payload_bytes=self.measured,
            memory_bytes=self.memory_bytes,
            left_out=self.left_out,
            warmup=WARMUP,
            chain=self.chain,
            checked=self.checked,
            ranks=self.places,
        )
