"""Fabricated inputs of the report: made-up tables and run records, never a measurement.

The 64-GPU sweep follows rules like those of a published V100 study (whole operators, bytes over rate), so that the
conclusions the report should draw from it are known. The laptop sweep has an oversubscribed point. Spreads are
invented: a fixed share of each value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import pandas as pd
from known import job_of, trace_of

from trisect.analysis.baseline import largest_fair_counts
from trisect.analysis.differences import Comparison
from trisect.analysis.timeline import timeline
from trisect.config.machine import Links
from trisect.network.implied_rates import implied
from trisect.network.regimes import MESSAGES
from trisect.report.catalogue import CATALOGUE
from trisect.report.figures import timeline_drawing
from trisect.report.figures.draw import draw
from trisect.report.material import Material
from trisect.results.notes import note
from trisect.results.record import Change, Correctness, PredictionRecord, Profiling, Quality, RankRecord, RunRecord
from trisect.results.tables import (
    COMPARISON,
    EFFICIENCIES,
    FITS,
    MEASURED_QUANTITIES,
    PREDICTED_QUANTITIES,
    PREDICTION,
    RATES,
    RELATIVE,
    SCALING,
    TIMES,
    TOTAL,
)

COUNTS = (1, 2, 4, 8, 16, 32, 64)
SPREAD = {"wait": 0.2, "transfer": 0.05}  # of the value, each way; 0.01 where not named
SECTIONS = {"inference": ("gradient", "denoiser"), "training": ("forward", "backward")}
OPERATORS = {"inference_2d": 8, "inference_3d": 2, "training_2d": 4, "training_3d": 4}


TILE_WORK = 1.27


def row(experiment: str, section: str, gpus: int, compute: float, transfer: float, wait: float, **other) -> dict:
    """One row with every derived column computed from compute, transfer and wait (one collective: SerE = 1)."""
    span, compute_max = compute + transfer + wait, compute + wait
    values = {
        "span_s": span,
        "compute_s": compute,
        "transfer_s": transfer,
        "wait_s": wait,
        "hidden_s": 0.0,
        "idle_s": 0.02 * compute,
        "compute_max_s": compute_max,
        "wait_imbalance_s": 0.9 * wait,
        "wait_jitter_s": 0.1 * wait,
        "wait_late_start_s": 0.0,
        "load_balance": compute / compute_max,
        "comm_efficiency": compute_max / span,
        "serialization_efficiency": compute_max / (span - transfer),
        "transfer_efficiency": (span - transfer) / span,
        "parallel_efficiency": compute / span,
    }
    plain = {"experiment": experiment, "section": section, "gpus": gpus, "iterations": 10, "collectives": 1}
    plain |= {"payload_bytes": 805306368, "transfer_is_bound": False, "unattributed_share": 0.0, "repairs": 0}
    plain |= {"oversubscribed": False, "load_balance_bound": math.nan, "profiling_overhead": 1.03}
    plain |= {"peak_memory_bytes": (2e9 + 1e10 / gpus) * (0.6 if section in ("gradient", "forward") else 1.0)}
    plain |= {"tile_work": 1.0 if section == "gradient" else TILE_WORK, "tiling_psnr_db": math.nan}
    return dict.fromkeys(TIMES, 0.0) | plain | values | other


def finished(rows: Iterable[dict]) -> pd.DataFrame:
    """Rows of one experiment as tables.SCALING: the rows TOTAL, the columns against the smallest count, intervals."""
    table = pd.DataFrame(rows)
    totals = []
    for gpus, sections in table.groupby("gpus"):
        total = sections[list(TIMES)].sum()
        flags = sections.iloc[0][
            ["oversubscribed", "load_balance_bound", "profiling_overhead", "iterations", "repairs"]
        ]
        made = row(sections["experiment"].iloc[0], TOTAL, int(gpus), *total[["compute_s", "transfer_s", "wait_s"]])
        totals.append(made | total.to_dict() | flags.to_dict() | {"collectives": len(sections)})
    table = pd.concat([table, pd.DataFrame(totals)], ignore_index=True)
    base = int(table["gpus"].min())
    first = table[table["gpus"] == base].set_index("section")
    ratio = table["gpus"] / base
    table["baseline_gpus"] = base
    table["speedup"] = table["section"].map(first["span_s"]) / table["span_s"]
    table["cost"] = ratio / table["speedup"]
    table["comp_scaling"] = table["section"].map(first["compute_s"]) / (ratio * table["compute_s"])
    table["global_efficiency"] = table["parallel_efficiency"] * table["comp_scaling"]
    table["untiled_efficiency"] = table["global_efficiency"] / table["tile_work"]
    for column in (*TIMES, *EFFICIENCIES, *RELATIVE):
        share = next((value for key, value in SPREAD.items() if key in column), 0.01)
        known = ~((table["gpus"] == base) & (column in RELATIVE))
        table[f"{column}_lo"] = (table[column] * (1 - share)).where(known)
        table[f"{column}_hi"] = (table[column] * (1 + share)).where(known)
    return table.sort_values("gpus", kind="stable")[list(SCALING)].reset_index(drop=True)


def _network_transfer(payload: float, gpus: int) -> float:
    """Bytes over rate: NVLink within a node of 4, a tree at two nodes, a ring beyond."""
    if gpus == 1:
        return 0.0
    ring = 2 * payload * (gpus - 1) / gpus
    return payload / 17e9 if gpus == 8 else ring / {2: 40e9, 4: 119e9}.get(gpus, 10.5e9)


def _operators_compute(gpus: int, operators: int, each: float, idle: float = 0.0055) -> tuple[float, float]:
    """Mean and largest compute of ranks that hold whole operators; a rank without one still spends `idle`."""
    largest = each * math.ceil(operators / gpus)
    return (each * operators + idle * max(gpus - operators, 0)) / gpus, largest


def _inference(name: str, denoiser: float, operator: float, payload: float, counts: Iterable[int]) -> pd.DataFrame:
    rows = []
    for n in counts:
        transfer = _network_transfer(payload, n)
        mean, largest = _operators_compute(n, OPERATORS[name], operator, idle=operator / 7)
        bound = OPERATORS[name] / (n * math.ceil(OPERATORS[name] / n))
        more = {"load_balance_bound": bound}
        rows.append(row(name, "gradient", n, mean, transfer, largest - mean + (n > 1) * 0.01 * mean, **more))
        rows.append(row(name, "denoiser", n, denoiser / n, transfer, (n > 1) * 0.03 * denoiser / n, **more))
    return finished(rows)


def _training(name: str, forward: float, messages: float, lag: float, counts: Iterable[int]) -> pd.DataFrame:
    rows = []
    for n in counts:
        transfer = messages * _network_transfer(2e8, n)
        wait = (n > 1) * (0.01 * forward / n + lag * (1 - 4 / max(n, 4)))
        rows.append(row(name, "forward", n, forward / n, transfer, wait))
        rows.append(row(name, "backward", n, 2.1 * forward / n, 1.2 * transfer, 0.9 * wait))
    return finished(rows)


def cluster_scaling() -> pd.DataFrame:
    """Four experiments at 1 to 64 GPUs (training_3d from 4), after the published rules."""
    return pd.concat(
        [
            _inference("inference_2d", 18.3, 0.038, 805306368, COUNTS),
            _inference("inference_3d", 172.0, 0.013, 536870912, COUNTS),
            _training("training_2d", 36.0, 13, 0.2, COUNTS),
            _training("training_3d", 205.0, 8, 0.1, COUNTS[2:]),
        ],
        ignore_index=True,
    )


def laptop_scaling() -> pd.DataFrame:
    """Two experiments at 1, 2 and 4 ranks on 2 cores: the last point is oversubscribed and twice as slow."""
    tables = []
    for name in ("inference_2d", "training_2d"):
        first, second = SECTIONS[name.split("_")[0]]
        rows = []
        for n in (1, 2, 4):
            slow = {"oversubscribed": n == 4, "load_balance_bound": 1.0, "iterations": 3}
            compute = 0.4 / min(n, 2)
            rows.append(row(name, first, n, 0.2 * compute, 0.004 * (n - 1), 0.01 * (n - 1), **slow))
            rows.append(row(name, second, n, compute, 0.004 * (n - 1), 0.02 * (n - 1), **slow))
        tables.append(finished(rows))
    return pd.concat(tables, ignore_index=True)


def ranks(scaling: pd.DataFrame) -> pd.DataFrame:
    """Compute of every rank in 10 iterations, at the largest count that was not oversubscribed.

    The last rank takes a fifth longer every time in the first section; in the other, another rank each time.
    """
    rows = []
    for (experiment, section), found in scaling[scaling["section"] != TOTAL].groupby(
        ["experiment", "section"], sort=False
    ):
        fair = found[~found["oversubscribed"]]
        row_ = fair.loc[fair["gpus"].idxmax()]
        count, first = int(row_["gpus"]), section in ("gradient", "forward")
        for iteration in range(10):
            late = count - 1 if first else 7 * iteration % count
            for rank in range(count):
                compute_s = row_["compute_s"] * (1.2 if rank == late else 1.0)
                rows.append((experiment, count, False, rank, iteration, section, compute_s))
    names = ["experiment", "gpus", "oversubscribed", "rank", "iteration", "section", "compute_s"]
    return pd.DataFrame(rows, columns=names)


def rates(scaling: pd.DataFrame, per_node: int = 4) -> pd.DataFrame:
    """Implied rates of a table: 2D inference with NCCL's logs, a tree at 8; the others without. And a probe's rates."""
    links = Links(pair_gb_per_s=40, network_gb_per_s={"ring": 10.5, "tree": 17}, tree_nodes=[2])
    tables = []
    for experiment, rows in scaling.groupby("experiment", sort=False):
        places = rows[["section", "gpus"]].itertuples(index=False, name=None)
        known = {place: "tree" if place[1] == 8 else "ring" for place in places} if per_node == 4 else {}
        counts = dict.fromkeys(rows["gpus"], per_node)
        table = implied(rows, counts, known if experiment == "inference_2d" else {}, links if per_node == 4 else None)
        table = table.assign(experiment=experiment, probed_gb_per_s=1.1 * table["machine_gb_per_s"], cut_lines=0)
        tables.append(table.merge(rows[["section", "gpus", "hidden_s", "iterations", "oversubscribed"]]))
    return pd.concat(tables, ignore_index=True)[list(RATES)]


def prediction(scaling: pd.DataFrame, largest: int = 1024) -> pd.DataFrame:
    """A prediction of a table that is 4 % too long for compute and 10 % too short for transfer and wait.

    Past the largest count it goes on as 1/n for compute; the two smallest counts are marked as fitted.
    """
    rows = []
    for (experiment, section), found in scaling.groupby(["experiment", "section"], sort=False):
        measured = found.set_index("gpus").sort_index()
        counts = sorted({*measured.index, *(2**k for k in range(11) if measured.index.min() <= 2**k <= largest)})
        for n in counts:
            known, last = n in measured.index, measured.loc[measured.index[measured.index <= n].max()]
            made = row(experiment, section, n, 1.04 * last["compute_s"] * last.name / n, 0.9 * last["transfer_s"],
                       0.9 * last["wait_s"])  # fmt: skip
            made |= {"cost": n * made["span_s"] / (counts[0] * measured["span_s"].iloc[0])}
            fit = "fitted" if n in measured.index[:2] else "held out"
            made |= {"role": fit if known else "predicted", "oversubscribed": known and last["oversubscribed"]}
            made |= {f"measured_{name}": last[name] if known else math.nan for name in MEASURED_QUANTITIES}
            for name in PREDICTED_QUANTITIES:
                made[f"error_{name}"] = made[name] / last[name] - 1 if known and last[name] else math.nan
            rows.append(made)
    return pd.DataFrame(rows)[list(PREDICTION)]


def drawings(scaling: pd.DataFrame, unit: str = "GPU", tables: dict[str, pd.DataFrame] | None = None) -> dict[str, str]:
    """Every figure of a table, and of ranks, rates and a prediction that fit it; or those of some `tables` alone."""
    drawn = tables or material(scaling).tables
    return {name: draw(name, drawn[entry.table], unit) for name, entry in CATALOGUE.items() if entry.table in drawn}


def movement(scaling: pd.DataFrame, per_node: int = 4) -> dict[str, pd.DataFrame]:
    """Material's data movement: rates, a probe's fit at every count, and two messages of each section."""
    fits, messages = [], []
    shared = scaling.groupby("gpus")["oversubscribed"].any()
    for gpus in sorted(scaling.loc[scaling["gpus"] > 1, "gpus"].unique()):
        line = {"gpus": gpus, "nodes": -(-gpus // per_node), "algorithm": "chosen", "ran": "ring", "reading": "ring"}
        line |= {"protocol": "simple", "nccl_version": "2.27.5", "alpha_s": 2e-5, "alpha_s_lo": 1.9e-5}
        line |= {"alpha_s_hi": 2.1e-5, "gb_per_s": 10.0, "gb_per_s_lo": 9.8, "gb_per_s_hi": 10.2}
        line |= {"crossover_bytes": 2e5, "sizes": 11, "smallest_bytes": 1024, "largest_bytes": 2**30}
        fits.append(line | {"residual": 0.04, "r2": 0.999, "oversubscribed": bool(shared[gpus])})
    for name, section, gpus in scaling[["experiment", "section", "gpus"]].itertuples(index=False):
        for payload, regime in ((8, "latency-bound"), (805306368, "bandwidth-bound")) if gpus > 1 else ():
            messages.append((name, gpus, section, payload, 2.0, "simple", 2e5, 2e5 / (2e5 + payload), regime))
    table = pd.DataFrame(messages, columns=["experiment", "gpus", *MESSAGES])
    messages_ = table[table["section"] != TOTAL]
    return {"rates": rates(scaling, per_node), "fits": pd.DataFrame(fits, columns=list(FITS)), "messages": messages_}


def prediction_records(scaling: pd.DataFrame, unit: str = "GPU") -> dict[str, PredictionRecord]:
    """What a prediction of each experiment answers: invented."""
    change = Change(change="as_is", pays=64, half=1024, crossing=0, efficiency=0.5)
    return {
        str(name): PredictionRecord(
            experiment=str(name),
            size="published",
            machine="v100",
            unit=unit,
            fitted=[1, 2],
            algorithms={2: "ring", 1024: "ring"},
            shown_at=64,
            answers=[note("efficiency_holds", level=0.8, count=64)],
            what_if=[change],
            errors=[note("none_held_out")],
            notes=[note("rates_of_transfers")],
        )
        for name in scaling["experiment"].unique()
    }


def material(scaling: pd.DataFrame, *, per_node: int = 4, **changes: object) -> Material:
    """Everything that a page shows, all invented; `changes` replaces fields, `records` among them."""
    unit = "GPU" if per_node == 4 else "rank"
    whole = Material(
        scaling,
        ranks(scaling),
        **movement(scaling, per_node),
        prediction=prediction(scaling),
        predictions=prediction_records(scaling, unit),
        records=records_for(scaling),
    )
    return replace(whole, **changes)


def laptop_material(scaling: pd.DataFrame, **changes: object) -> Material:
    """Of a sweep on CPU cores, whose ranks share one host."""
    return material(scaling, per_node=99, **{"records": records_for(scaling, laptop_record)} | changes)


def timelines(scaling: pd.DataFrame) -> dict[tuple[str, int], str]:
    """A drawn timeline of each experiment at its largest count that was not oversubscribed: made-up iterations."""
    drawn = {}
    for experiment, gpus in largest_fair_counts(scaling).items():
        arrivals = [[40 + (7 * rank + 3 * step) % 11 for rank in range(gpus)] for step in range(3)]
        job = job_of(*arrivals, transfer_ms=5, name=SECTIONS[experiment.split("_")[0]][0], barrier_ns=1000)
        drawn[experiment, gpus] = timeline_drawing.draw(timeline(trace_of(job)), experiment, gpus)
    return drawn


def comparison(**changes: object) -> Comparison:
    """Three rows: a section that got worse, the whole within noise, an efficiency that is not known."""
    nan = math.nan
    rows = [
        ("inference_2d", 2, "gradient", "span_s", 0.1, 0.12, 0.02, 0.015, 0.025, 0.2, 0.001, "worse"),
        ("inference_2d", 2, "total", "span_s", 0.3, 0.3, 0.0, -0.01, 0.02, 0.0, 1.0, "within noise"),
        ("inference_2d", 2, "total", "load_balance", nan, 0.5, nan, nan, nan, nan, nan, "unknown"),
        ("inference_2d", 2, "total", "transfer_efficiency", 0.9, 0.87, -0.03, -0.04, -0.02, -0.03, 0.5, "within noise"),
    ]
    found = Comparison(
        table=pd.DataFrame(rows, columns=COMPARISON),
        only_before=[("training_2d", 4)],
        only_after=[],
        changed=[note("changed", name="torch", before="2.10", after="2.14")],
    )
    return replace(found, **changes)


def record(experiment: str, gpus: int, **changes) -> RunRecord:
    """A run record with invented values; `changes` replaces fields."""
    mode = "training" if experiment.startswith("training") else "inference"
    ranks = [
        RankRecord(
            rank=rank,
            local_rank=rank % 4,
            host=f"node{rank // 4:02d}",
            pid=4000 + rank,
            device=f"cuda:{rank % 4} Tesla V100-SXM2-32GB",
            device_uuid=f"GPU-{rank:08x}",
            cores=10,
            threads=10,
            tiles=64 // gpus,
            operators=1,
            peak_memory_bytes=dict.fromkeys(SECTIONS[mode], 9000000000 + rank),
        )
        for rank in range(gpus)
    ]
    fields = {
        "experiment": experiment,
        "gpus": gpus,
        "size": "published",
        "mode": mode,
        "sections": list(SECTIONS[mode]),
        "config": {"experiment": experiment, "image": [8192, 8192], "seed": 7},
        "config_sha256": "c0ffee" * 10 + "c0ff",
        "launcher": "slurm",
        "job_id": f"10{gpus:03d}",
        "backend": "nccl",
        "device": "cuda",
        "placement_as_intended": True,
        "versions": {"trisect": "0.1.0", "torch": "2.10.0+cu128", "deepinv": "0.5.0", "nccl": "2.27.5"},
        "git_revision": "0123abc-dirty",
        "environment": {"NCCL_DEBUG": "INFO"},
        "hosts": {f"node{node:02d}": 40 for node in range(math.ceil(gpus / 4))},
        "oversubscribed": False,
        "tiles": 64,
        "operators": OPERATORS.get(experiment, 4),
        "patch_requested": [1024, 1024],
        "patch_effective": [1024, 1024],
        "load_balance_bound": {"tiles": 1.0, "operators": 0.5},
        "iterations": {"warmup": 2, "measured": 10, "unprofiled": 5},
        "measurements_sha256": "ab" * 32,
        "correctness": Correctness(
            relative_difference={"reconstruction": 3.1e-7}, tolerance=1e-4, size="laptop", iterations=2
        ),
        "profiling": Profiling(profiled_s=[1.03] * 3, unprofiled_s=[1.0] * 3, overhead=1.03),
        "quality": Quality(
            size="laptop",
            psnr_db=[5.6, 15.2, 24.1, 31.4][:: 3 if mode == "training" else 1],
            single_psnr_db=[5.6, 15.2, 24.1, 31.4][:: 3 if mode == "training" else 1],
            untiled_psnr_db=None,
        ),
        "ranks": ranks,
    }
    return RunRecord(**(fields | changes))


def laptop_record(experiment: str, gpus: int) -> RunRecord:
    """A run on 2 CPU cores."""
    made = record(experiment, gpus, backend="gloo", device="cpu", size="laptop", launcher="local", hosts={"laptop": 2})
    ranks = [
        rank.model_copy(update={"host": "laptop", "device": "cpu", "device_uuid": None, "local_rank": rank.rank})
        for rank in made.ranks
    ]
    return made.model_copy(update={"ranks": ranks, "oversubscribed": gpus > 2})


def records_for(scaling: pd.DataFrame, make: Callable[[str, int], RunRecord] = record) -> list[RunRecord]:
    """A record for every run of a table."""
    runs = scaling[["experiment", "gpus"]].drop_duplicates()
    return [make(str(experiment), int(gpus)) for experiment, gpus in runs.itertuples(index=False)]
