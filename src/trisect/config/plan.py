"""The whole configuration, and what it plans: every run and every probe, with all that their measurements depend on."""

import hashlib
import json
import math
from typing import Any

from trisect.config.experiment import Experiment, Size
from trisect.config.fields import Closed, Count, nearest
from trisect.config.footprint import require_fit
from trisect.config.machine import AUTO, Machine
from trisect.config.schedule import fitted_iterations, iterations_run, limit_minutes
from trisect.config.settings import COARSER, Iterations, Precision, Settings
from trisect.errors import TrisectError

NCCL_ALGO = {"ring": "Ring", "tree": "ring;allreduce:tree,tree"}
"""How NCCL is told. Its tree does all_reduces alone, and versions that know a list for each collective end a job whose
other ones are left without any. They read: a tree for all_reduces, else a ring. Older ones split at commas alone and
skip words they do not know: to them it says tree, and they do the others in a ring anyway."""


def load_balance_bound(pieces: int, ranks: int) -> float:
    """The best load balance when equal pieces are dealt whole: mean over maximum.

    The busiest rank holds ceil(pieces / ranks). 8 operators on 16 ranks reach 0.5; 36 tiles on 8 ranks reach 0.9.
    """
    return pieces / (ranks * math.ceil(pieces / ranks))


class Ranks(Closed):
    """What every kind of launch has in common: its ranks, and what they join."""

    gpus: Count
    device: str
    backend: str
    environment: dict[str, str]
    collective_timeout_s: int

    def payload(self) -> str:
        """This as JSON with sorted keys: the worker's input, and what its measurement is rerun for."""
        return json.dumps(self.content(), sort_keys=True)

    def content(self) -> dict[str, Any]:
        """What the payload holds."""
        return self.model_dump(mode="json")

    def sha256(self) -> str:
        """Hash of the payload; all ranks must agree on it."""
        return hashlib.sha256(self.payload().encode()).hexdigest()


class Run(Ranks):
    """One run: an experiment at one GPU count, with everything that its measurement depends on."""

    name: str
    size: str
    experiment: Experiment
    iterations: Iterations
    precision: Precision
    seed: int

    @property
    def problem_size(self) -> Size:
        """The size measured."""
        return self.experiment.sizes[self.size]

    @property
    def tolerance(self) -> float:
        """Largest relative difference from one process: the experiment's, wider by as much as numbers are coarser."""
        return self.experiment.tolerance * COARSER[self.precision]

    def content(self) -> dict[str, Any]:
        """Of the experiment's sizes only those that are used, so that editing another reruns nothing."""
        used = self.experiment.measured_sizes(self.size)
        content = super().content()
        content["experiment"]["sizes"] = {k: v for k, v in content["experiment"]["sizes"].items() if k in used}
        return content

    @property
    def pieces(self) -> dict[str, int]:
        """What is dealt whole to ranks, by kind."""
        return {"tiles": self.problem_size.tiles, "operators": self.experiment.operators}

    def checkpointing(self) -> dict[int, bool]:
        """Whether backward computes batches again, by rank that holds tiles."""
        size = self.problem_size
        held = {rank: len(range(rank, size.tiles, self.gpus)) for rank in range(min(self.gpus, size.tiles))}
        several = {rank: size.batches(tiles) > 1 for rank, tiles in held.items()}
        return several if size.checkpoint == "auto" else dict.fromkeys(held, size.checkpoint == "always")

    def bounds(self) -> dict[str, float]:
        """Best load balance that whole pieces allow, per kind of piece."""
        return {kind: load_balance_bound(count, self.gpus) for kind, count in self.pieces.items()}


class ProbeRun(Ranks):
    """All_reduces of many sizes at one GPU count, with one algorithm."""

    algorithm: str
    """AUTO by the backend, or one that NCCL is told to take."""
    smallest_bytes: int
    largest_bytes: int
    repetitions: int
    seconds: float

    @property
    def payload_bytes(self) -> list[int]:
        """Sizes asked for, ascending: powers of two times the smallest."""
        doublings = (self.largest_bytes // self.smallest_bytes).bit_length()
        return [self.smallest_bytes << k for k in range(doublings)]


class Sweep(Closed):
    """The whole configuration: the settings and the files they name."""

    settings: Settings
    machine: Machine
    experiments: dict[str, Experiment]
    """Every file of config/experiments/, not only those of the sweep."""
    iteration_s: dict[str, dict[int, float]] = {}
    """Modelled seconds of an iteration, by experiment and count; empty where the model knows none."""

    def run(self, experiment: str, gpus: int) -> Run:
        """One run, in the sweep or not.

        Raises:
            TrisectError: no such experiment, or a count the machine or the problem cannot take.
        """
        if experiment not in self.experiments:
            raise TrisectError(
                f"experiments: no {experiment!r} in config/experiments/{nearest(experiment, self.experiments)}"
            )
        if gpus < 1:
            raise TrisectError(f"gpus: {gpus} is no GPU count; use 1 or more")
        self.machine.check_count(gpus)
        least = self.least_gpus(experiment)
        if gpus < least:
            raise TrisectError(
                f"gpus: {experiment} at size {self.settings.size} does not fit on {gpus} GPUs of"
                f" {self.machine.gpu_memory_gb:g} GiB; use {least} or more"
            )
        settings = self.settings.model_dump(include={"size", "precision", "seed"})
        return Run(
            **self._ranks(gpus),
            **settings,
            name=experiment,
            experiment=self.experiments[experiment],
            iterations=self.iterations(experiment, gpus),
        )

    def least_gpus(self, experiment: str) -> int:
        """The fewest GPUs of this machine that hold the experiment.

        Raises:
            TrisectError: no number of them does.
        """
        chosen, memory_gb = self.experiments[experiment], self.machine.gpu_memory_gb
        return require_fit(experiment, chosen, self.settings.size, memory_gb)

    def modelled_s(self, experiment: str, gpus: int) -> float | None:
        """Modelled seconds of an iteration; None where the model knows none."""
        return self.iteration_s.get(experiment, {}).get(gpus)

    def iterations(self, experiment: str, gpus: int) -> Iterations:
        """Of one run: those of the settings, or fewer whose trace is not too large, and which the model gives time to.

        Raises:
            TrisectError: even the fewest take longer than the machine's time limit.
        """
        asked, iteration_s = self.settings.iterations, self.modelled_s(experiment, gpus)
        most = self.machine.most_minutes
        chosen, size = self.experiments[experiment], self.settings.size
        fitted = fitted_iterations(asked, chosen, size, gpus, iteration_s=iteration_s, most_minutes=most)
        if iteration_s is not None and limit_minutes(fitted, iteration_s) > most:
            raise TrisectError(
                f"slurm.time_limit_minutes: {most} is too short for {experiment} at {gpus}: by the model an iteration"
                f" takes {iteration_s:.0f} s, and {iterations_run(fitted)} of them need"
                f" {limit_minutes(fitted, iteration_s)} minutes; raise it, or leave this count out"
            )
        return fitted

    def limit_minutes(self, experiment: str, gpus: int) -> int:
        """The time limit that a run asks for."""
        iteration_s = self.modelled_s(experiment, gpus)
        if iteration_s is None:
            return self.machine.slurm.time_limit_minutes
        return limit_minutes(self.iterations(experiment, gpus), iteration_s)

    def probe(self, gpus: int, algorithm: str) -> ProbeRun:
        """The probe of one count, in the sweep or not: with AUTO, or an algorithm that NCCL is told to take.

        Raises:
            TrisectError: a count the machine cannot take, or a backend that takes no such order.
        """
        self.machine.check_count(gpus)
        ranks = self._ranks(gpus)
        if algorithm != AUTO:
            if self.machine.backend != "nccl":
                raise TrisectError(
                    f"probe: NCCL alone can be told to take a {algorithm}, the machine's backend is"
                    f" {self.machine.backend}; probe {AUTO} instead"
                )
            ranks["environment"] = self.machine.environment | {"NCCL_ALGO": NCCL_ALGO[algorithm]}
        return ProbeRun(**ranks, algorithm=algorithm, **self.machine.probe.model_dump(exclude={"algorithms"}))

    def probes(self) -> list[ProbeRun]:
        """Every probe of the sweep's counts: with the algorithm that is chosen, and with those the machine asks for."""
        algorithms = (AUTO, *self.machine.probe.algorithms)
        return [self.probe(n, algorithm) for n in sorted(self.settings.gpus) for algorithm in algorithms]

    def _ranks(self, gpus: int) -> dict[str, Any]:
        shared = ("device", "backend", "environment", "collective_timeout_s")
        return {"gpus": gpus} | {name: getattr(self.machine, name) for name in shared}

    def inputs(self, experiment: str) -> list[str]:
        """The files that an experiment's runs read: denoiser weights and ground truth, where its sizes name some."""
        chosen = self.experiments.get(experiment)
        return [] if chosen is None else chosen.inputs(self.settings.size)

    def counts(self, experiment: str) -> list[int]:
        """GPU counts of the sweep that this experiment fits on, ascending."""
        least = self.least_gpus(experiment)
        return sorted(n for n in self.settings.gpus if n >= least)

    def runs(self) -> list[Run]:
        """Every run of the sweep."""
        return [self.run(name, n) for name in self.settings.experiments for n in self.counts(name)]
