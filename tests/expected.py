"""What the decomposition of a synthetic job must give: docs/metrics.md restated on true times."""

from __future__ import annotations

import numpy as np
import pandas as pd

from trisect.results.tables import TIMES, TOTAL
from trisect.synthetic.ground_truth import Array, PlayedIteration, SyntheticJob, play


def expected(job: SyntheticJob) -> pd.DataFrame:
    """The decomposition's times for `job`, in seconds: columns `section` and tables.TIMES, one row a section and TOTAL.

    Plain restatement of docs/metrics.md on true times, kept apart from trisect.analysis on purpose.
    """
    played = play(job)
    names = list(dict.fromkeys(section.section.name for step in played for section in step.sections))
    rows = [_expected_section(name, played, job.world_size) for name in names]
    table = pd.DataFrame(rows, index=names) / 1e9
    table.loc[TOTAL] = table.sum()
    return table.rename_axis("section").reset_index()[["section", *TIMES]]


def _expected_section(name: str, played: list[PlayedIteration], world_size: int) -> dict[str, float]:
    per_iteration = []
    arrivals: dict[int, list[tuple[Array, float]]] = {}
    for step in played:
        sums = {key: np.zeros(world_size) for key in ("span", "transfer", "wait", "hidden", "busy")}
        slot = 0
        for section in (section for section in step.sections if section.section.name == name):
            sums["span"] += section.end_ns - section.start_ns
            sums["busy"] += section.tail_ns
            for one in section.exchanges:
                transfer = one.exposed_ns.min()
                sums["transfer"][one.members] += transfer
                sums["wait"][one.members] += one.exposed_ns - transfer
                sums["hidden"][one.members] += one.hidden_ns
                sums["busy"][one.members] += one.compute_end_ns - one.start_ns + one.hidden_ns
                share = len(one.members) / world_size
                arrivals.setdefault(slot, []).append((one.arrival_ns + one.hidden_ns - one.start_ns, share))
                slot += 1
        sums["compute"] = sums["span"] - sums["transfer"] - sums["wait"]
        sums["idle"] = sums["compute"] - sums["busy"]
        per_iteration.append({key: value.mean() for key, value in sums.items()} | {"max": sums["compute"].max()})
    mean = pd.DataFrame(per_iteration).mean()
    imbalance = jitter = 0.0
    for waits in arrivals.values():
        c = np.array([arrival for arrival, _ in waits])  # iteration x rank
        scale = waits[0][1] * len(c) / len(played)  # ranks outside the group and iterations without it wait for nobody
        imbalance += scale * (c.mean(axis=0).max() - c.mean())
        jitter += scale * (c.max(axis=1).mean() - c.mean(axis=0).max())
    times = {f"{key}_s": float(mean[key]) for key in ("span", "compute", "transfer", "wait", "hidden", "idle")}
    causes = {"wait_imbalance_s": imbalance, "wait_jitter_s": jitter}
    late = {"wait_late_start_s": times["wait_s"] - imbalance - jitter}
    return times | {"compute_max_s": float(mean["max"])} | causes | late
