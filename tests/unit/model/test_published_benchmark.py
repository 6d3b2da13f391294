"""The model with the study's constants against another set of measurements: the public benchmark at other sizes."""

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from trisect.model.predict import draw, of_machine, pieces, predict
from trisect.results.tables import TOTAL

BENCHMARK = yaml.safe_load(Path(__file__).with_name("published_v100_benchmark.yaml").read_text())
TOLERANCE = 0.10
"""Of every value. test_published.py holds transfer and rates to 5 %, but no value here is one of these alone."""

COMPARED = {"communication": ("compute_s", "communication_s", "iteration_s"), "timing": ("physics_s", "denoising_s")}
"""By table of the file. `iteration_s` is nearly the sum of the two before it."""

PATCH = {"communication": 512, "timing": 448}
STUDY_PATCH = 512
HALO = 2 * 32
SECTIONS = {"physics_s": "gradient", "denoising_s": "denoiser"}

BATCH = "A tile takes 50.6 to 56.4 ms by how many share a batch; the study's batches of 4 larger tiles give 56.5 ms."
FIXED = "About 1 ms lacks in a section of 6 to 11 ms: launches and small messages, likely, which the model leaves out."
RING = "The transfer is 15 % above the byte rule; the study's own gradient is 13 % above it."
CHANCE = "The wait of one rank over about eight iterations: within 1.6 standard deviations of its chance."
ONE_RANK = "The wait of one rank: it goes with how fast its own GPU is, and the model's are alike. iteration_s is met."

OFF = {
    ("2D 4096x4096", 2, "communication_s"): CHANCE,
    ("2D 4096x4096", 8, "communication_s"): CHANCE,
    ("3D 512x512x512", 4, "communication_s"): ONE_RANK,
    ("3D 512x512x512", 8, "communication_s"): ONE_RANK,
    ("3D 512x512x512", 16, "communication_s"): ONE_RANK,
    ("3D 512x512x512", 32, "communication_s"): ONE_RANK,
    ("3D 512x512x512", 64, "communication_s"): ONE_RANK,
    ("2048", 2, "physics_s"): FIXED,
    ("2048", 4, "physics_s"): FIXED,
    ("2048", 8, "physics_s"): FIXED,
    ("4096", 16, "physics_s"): RING,
    ("2048", 2, "denoising_s"): BATCH,
    ("4096", 8, "denoising_s"): BATCH,
    ("8192", 2, "denoising_s"): BATCH,
    ("8192", 4, "denoising_s"): BATCH,
    ("8192", 8, "denoising_s"): BATCH,
}
"""All values that the model does not meet, with the reason."""


def labelled(row):
    """What a row is of; `undivided` where one GPU ran the solver without tiles."""
    problem = str(row.get("problem", row.get("image")))
    return problem if row["mode"] == "distributed" else f"{problem} undivided"


ROWS = [(table, row) for table in COMPARED for row in BENCHMARK[table]]
VALUES = [
    (table, row, what)
    for table, row in ROWS
    for what in COMPARED[table]
    if row[what]  # one GPU communicates nothing
]
KEYS = [(labelled(row), row["gpus"], what) for _, row, what in VALUES]


def tiling(side, patch):
    """Tiles of a square image, and their area over the image's."""
    tiles = math.ceil(side / patch) ** 2
    return tiles, tiles * (patch + HALO) ** 2 / side**2


def problem_of(table, row, problems):
    """The study's problem at the row's size: compute by the pixels that are processed, payload by the image's."""
    if str(row.get("problem", "")).startswith("3D"):
        return problems["inference_3d"]  # the same size and tiles
    study = problems["inference_2d"]
    side = row.get("image", 4096)
    tiles, work = tiling(side, PATCH[table]) if row["mode"] == "distributed" else (1, 1.0)
    assert work == pytest.approx(row.get("work", work), abs=1e-6)
    image_bytes = 3 * 4 * side**2
    pixels = image_bytes / study.image_bytes
    study_tiles, study_work = tiling(math.isqrt(study.image_bytes // 12), STUDY_PATCH)
    assert study_tiles == study.tiles

    def sized(of):
        shares = {"operators_s": pixels, "repeated_s": pixels, "tiles_s": pixels * work / study_work}
        return of.model_copy(update={key: getattr(of, key) * share for key, share in shares.items()})

    sections = {name: sized(of) for name, of in study.sections.items()}
    return replace(study, tiles=tiles, image_bytes=image_bytes, sections=sections)


def model_of(table, row, problems, v100):
    return of_machine(problem_of(table, row, problems), v100, v100.links)


def first_rank_s(model, gpus):
    """Compute of rank 0, whose profile the benchmark reports. It holds as many tiles and operators as any other."""
    planned = [
        piece for name in model.problem.sections for piece in pieces(model.problem, name, model.all_reduce(gpus))
    ]
    return sum(piece.compute_s[0] for piece in planned)


@pytest.fixture(scope="module", name="modelled")
def _modelled(problems, v100):
    """By key, as in KEYS."""
    found = {}
    for table, row in ROWS:
        model, gpus = model_of(table, row, problems, v100), row["gpus"]
        span = predict(model, [gpus], iterations=2000).set_index("section")["span_s"]
        compute = first_rank_s(model, gpus)
        values = {
            "compute_s": compute,
            "communication_s": span[TOTAL] - compute,
            "iteration_s": span[TOTAL],
            **{what: span[section] for what, section in SECTIONS.items()},
        }
        found |= {(labelled(row), gpus, what): values[what] for what in COMPARED[table]}
    return found


def said(value, found):
    return f"measured {value:.4g}, modelled {found:.4g} ({found / value - 1:+.1%})"


@pytest.mark.parametrize(("table", "row", "what"), VALUES, ids=["-".join(map(str, key)) for key in KEYS])
def test_every_value(table, row, what, modelled):
    key = labelled(row), row["gpus"], what
    met = modelled[key] == pytest.approx(row[what], rel=TOLERANCE)
    assert met or key in OFF, said(row[what], modelled[key])
    assert not met or key not in OFF, f"is met now, take it out of OFF: {said(row[what], modelled[key])}"


def test_how_many_are_met(modelled):
    """docs/model.md says so."""
    assert len(set(KEYS)) == len(KEYS)
    assert set(OFF) <= set(KEYS)
    compared, off = Counter(what for *_, what in KEYS), Counter(what for *_, what in OFF)
    for key, (_, row, what) in zip(KEYS, VALUES, strict=True):
        print(*key, said(row[what], modelled[key]), OFF.get(key, ""))
    assert compared == {
        "compute_s": 14,
        "communication_s": 12,
        "iteration_s": 14,
        "physics_s": 20,
        "denoising_s": 20,
    }
    assert off == {"communication_s": 7, "physics_s": 4, "denoising_s": 5}


# The reasons above, as far as the file's own numbers show them.


def timed(side, gpus):
    (row,) = [row for row in BENCHMARK["timing"] if (row["image"], row["gpus"]) == (side, gpus)]
    return row


def tile_s(side, gpus, problems, v100):
    """Measured denoising of the busiest rank's tiles, less the modelled transfer, for one of them."""
    row = timed(side, gpus)
    model = model_of("timing", row, problems, v100)
    transfer = model.all_reduce(gpus).transfer_s(model.problem.image_bytes)
    return (row["denoising_s"] - transfer) / math.ceil(model.problem.tiles / gpus)


def test_the_time_of_a_tile_goes_with_its_batch(problems, v100):
    """Ranks with the same number of tiles agree across images; ranks with other numbers differ by a tenth."""
    alike = {13: [(2048, 2), (4096, 8)], 7: [(2048, 4), (4096, 16)], 4: [(2048, 8), (4096, 32)]}
    for at in alike.values():
        one, other = (tile_s(*each, problems, v100) for each in at)
        assert one == pytest.approx(other, rel=0.015)
    every = [tile_s(row["image"], row["gpus"], problems, v100) for row in BENCHMARK["timing"] if row["gpus"] > 1]
    assert min(every) == pytest.approx(0.0506, abs=5e-5)
    assert max(every) == pytest.approx(0.0564, abs=5e-5)
    work = problem_of("timing", timed(4096, 8), problems)
    assert work.sections["denoiser"].tiles_s / work.tiles == pytest.approx(0.0565, abs=5e-5)


def test_a_small_image_s_physics_lacks_about_a_millisecond(modelled):
    for gpus in (2, 4, 8):
        assert 0.0008 < timed(2048, gpus)["physics_s"] - modelled["2048", gpus, "physics_s"] < 0.0013


def test_transfer_of_physics_over_the_byte_rule(problems, v100):
    """Measured section less the modelled slowest rank, over the modelled transfer."""
    over = {}
    for row in BENCHMARK["timing"]:
        if (gpus := row["gpus"]) > 8:
            model = model_of("timing", row, problems, v100)
            planned = pieces(model.problem, "gradient", model.all_reduce(gpus))
            slowest = sum(piece.compute_s[0] for piece in planned) * (1 + v100.compute_jitter)
            transfer = model.all_reduce(gpus).transfer_s(model.problem.image_bytes)
            over[row["image"], gpus] = (row["physics_s"] - slowest) / transfer
    assert over[4096, 16] == pytest.approx(1.15, abs=0.01)
    assert all(1.02 < over[8192, gpus] < 1.04 for gpus in (16, 32, 64))
    assert all(0.98 < ratio < 1.16 for ratio in over.values())


@pytest.mark.parametrize(("gpus", "deviations"), [(2, -0.5), (8, 1.5)])
def test_the_2d_wait_that_is_off_is_within_chance(gpus, deviations, modelled, problems, v100):
    """In standard deviations of rank 0's wait, over the eight iterations that a run of ten leaves."""
    (row,) = [row for row in BENCHMARK["communication"] if (labelled(row), row["gpus"]) == ("2D 4096x4096", gpus)]
    model, rng = model_of("communication", row, problems, v100), np.random.default_rng(0)
    waits = 0.0
    for name in model.problem.sections:
        drawn = draw(pieces(model.problem, name, model.all_reduce(gpus)), v100.compute_jitter, 20_000, rng)
        waits = waits + (drawn.max(axis=2) - drawn[:, :, 0]).sum(axis=1)
    short = row["communication_s"] - modelled["2D 4096x4096", gpus, "communication_s"]
    assert short / (waits.std() / math.sqrt(8)) == pytest.approx(deviations, abs=0.1)


def test_the_3d_iteration_is_met_where_one_rank_s_wait_is_not(modelled):
    """What a rank lacks in compute it waits, so the two together are the slowest rank's compute and the transfer."""
    for gpus in (2, 4, 8, 16, 32, 64):
        (row,) = [row for row in BENCHMARK["communication"] if (labelled(row), row["gpus"]) == ("3D 512x512x512", gpus)]
        together = row["compute_s"] + row["communication_s"]
        assert modelled["3D 512x512x512", gpus, "iteration_s"] == pytest.approx(together, rel=0.02)


def test_overhead_goes_with_the_image_and_not_with_the_gpus():
    """The model has no such thing: the benchmark scores the whole image on every rank, between iterations."""
    for side, gb_per_s in [(2048, 3.1), (4096, 3.2), (8192, 3.3)]:
        seconds = [row["overhead_s"] for row in BENCHMARK["timing"] if row["image"] == side]
        assert max(seconds) / min(seconds) < 1.04
        assert 3 * 4 * side**2 / np.mean(seconds) / 1e9 == pytest.approx(gb_per_s, abs=0.05)
    for row in BENCHMARK["timing"]:
        assert row["total_s"] == pytest.approx(row["physics_s"] + row["denoising_s"] + row["overhead_s"], abs=2e-6)


def test_rest_of_a_profiled_iteration_is_a_fifteenth_of_that():
    """With PSNR alone, where the other runs also take SSIM and two more."""
    of_2d = [row for row in BENCHMARK["communication"] if row["problem"].startswith("2D")]
    rest = [row["iteration_s"] - row["compute_s"] - row["communication_s"] for row in of_2d]
    assert max(rest) / min(rest) < 1.08
    assert timed(4096, 2)["overhead_s"] / np.mean(rest) == pytest.approx(15, abs=0.5)
    outside = [row["outside_s"] for row in of_2d if row["gpus"] > 1]
    assert min(outside) > 7 * max(rest)  # so it is no part of the iteration
