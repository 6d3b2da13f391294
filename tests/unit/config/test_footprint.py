"""Which counts a problem fits on, by the counted memory of a rank; tests/unit/worker holds the count to the solver."""

import re
from pathlib import Path

import pytest

from trisect.config.footprint import CONTEXT_BYTES, least_gpus, padded_window, rank_memory, required_bytes
from trisect.config.loading import load_experiments

CONFIG = Path(__file__).parents[3] / "config"
EXPERIMENTS = load_experiments(CONFIG)
PAGE = (CONFIG.parent / "docs" / "memory.md").read_text()
STUDIED = ["inference_2d", "inference_3d", "training_2d", "training_3d"]


@pytest.mark.parametrize(("name", "least"), [("inference_2d", 1), ("inference_3d", 1), ("training_2d", 1)])
def test_the_study_s_problems_fit_where_they_were_run(name, least):
    assert least_gpus(EXPERIMENTS[name], "published", 32) == least


def test_3d_training_needs_four_gpus_of_32_gb_as_published():
    """Counts of a power of two alone were run."""
    fits = [n for n in (1, 2, 4, 8) if required_bytes(EXPERIMENTS["training_3d"], "published", n) <= 32 * 2**30]
    assert fits == [4, 8]


@pytest.mark.parametrize("name", STUDIED)
def test_more_gpus_need_no_more_memory_each_and_less_memory_no_fewer_gpus(name):
    needs = [required_bytes(EXPERIMENTS[name], "published", n) for n in (1, 2, 3, 4, 8, 16, 64, 256, 1024)]
    assert needs == sorted(needs, reverse=True)
    assert least_gpus(EXPERIMENTS[name], "published", None) == 1
    assert least_gpus(EXPERIMENTS[name], "published", 1) is None
    n = least_gpus(EXPERIMENTS[name], "published", needs[3] / 2**30)
    assert n <= 4
    assert n == 1 or required_bytes(EXPERIMENTS[name], "published", n - 1) > needs[3]


def test_a_tile_that_drunet_pads_counts_as_padded():
    size = EXPERIMENTS["inference_3d"].sizes["published"]
    assert (size.window, padded_window(size)) == ((12, 288, 288), (16, 288, 288))


@pytest.mark.parametrize("name", STUDIED)
@pytest.mark.parametrize("gpus", [1, 2, 4, 8, 16, 32, 64])
def test_the_page_has_the_counts_of_the_published_sizes(name, gpus):
    (row,) = re.findall(rf"^\| `{name}` \| {gpus} \|(.*)\|$", PAGE, re.MULTILINE)
    assert [cell.strip() for cell in row.split("|")] == cells(EXPERIMENTS[name], gpus)


def cells(experiment, gpus):
    """One row of the page's table, from its third cell on, in GiB."""
    held = rank_memory(experiment, "published", gpus)
    sizes = {"published": experiment.sizes["published"].model_copy(update={"checkpoint": "never"})}
    kept = rank_memory(experiment.model_copy(update={"sizes": sizes}), "published", gpus)
    parts = [held.images, held.operators, held.weights, held.tiles, held.activations, CONTEXT_BYTES]
    shown = [f"{part / 2**30:.1f}" for part in (*parts, held.total_bytes + CONTEXT_BYTES)]
    return [*shown, f"{(kept.total_bytes + CONTEXT_BYTES) / 2**30:.1f}" if experiment.training else ""]
