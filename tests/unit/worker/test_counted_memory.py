"""The counted memory of a rank against what the real solver allocates on CPU, by torch's own events."""

import json
from contextlib import nullcontext

import pytest
import torch
from deepinv.models import DRUNet
from problems_at import CPU, small
from torch.profiler import ProfilerActivity, profile, record_function

from trisect.config.footprint import parameters, rank_memory
from trisect.worker.correctness import alone
from trisect.worker.solver import build

WIDE = {"denoiser_channels": [16, 32, 64, 128], "denoiser_blocks": 1}
NARROW = {"denoiser_channels": [4, 8, 16, 32], "denoiser_blocks": 1}
"""oneDNN copies 4 channels as 16."""

CASES = {
    "many tiles": {"size": {"image": [3, 192, 192], "patch": 48, "overlap": 8, "batch": 4}},
    "all tiles at once": {"size": {"image": [3, 192, 192], "patch": 64, "overlap": 16, "batch": None}},
    "the image at once": {"size": {"image": [1, 192, 192], "patch": "none"}},
    "two blocks": {"size": {"image": [1, 192, 192], "patch": 64, "overlap": 16, "batch": 4, "denoiser_blocks": 2}},
    "super-resolution": {"problem": "super_resolution", "operators": 8, "size": {"image": [3, 256, 256], "patch": 64}},
    "many identities": {"problem": "denoising", "operators": 6, "size": {"image": [3, 256, 256], "patch": 64}},
    "training": {"mode": "training", "size": {"image": [3, 192, 192], "patch": 64, "overlap": 16, "batch": 2}},
    "unrolled": {
        **{"mode": "training", "problem": "super_resolution", "operators": 4, "unrolled_iterations": 3},
        "size": {"image": [3, 192, 192], "patch": 64, "overlap": 16, "batch": 4},
    },
    "without checkpoints": {
        **{"mode": "training", "unrolled_iterations": 2},
        "size": {"image": [1, 192, 192], "patch": 64, "overlap": 16, "batch": 3, "checkpoint": "never"},
    },
    "a volume": {
        **{"problem": "denoising", "operators": 2},
        "size": NARROW | {"image": [1, 48, 48, 48], "patch": 24, "overlap": 4, "batch": 4},
    },
    "training on a volume": {
        **{"mode": "training", "problem": "denoising", "operators": 4},
        "size": NARROW | {"image": [1, 48, 48, 48], "patch": 24, "overlap": 4, "batch": 2},
    },
}


@pytest.fixture(autouse=True)
def _one_thread():
    """Two that share their cores with other work wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def peak_bytes(run, folder):
    """The most that torch holds at once in two iterations of the run in this process."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        solver = build(run, alone(CPU))
        with record_function("iterations"):
            for _ in range(2):
                solver.iterate(lambda _: nullcontext())
    profiler.export_chrome_trace(str(folder / "trace.json"))
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    (start,) = (event["ts"] for event in events if event.get("name") == "iterations")
    changes = sorted((event["ts"], event["args"]["Bytes"]) for event in events if event.get("name") == "[memory]")
    held, most = 0, 0
    for ts, change in changes:
        held += change
        most = max(most, held) if ts >= start else held
    return most


@pytest.mark.parametrize("name", CASES)
def test_counted_is_what_is_allocated(name, tmp_path):
    case = CASES[name]
    run = small(**case | {"size": WIDE | case["size"]})
    counted = rank_memory(run.experiment, "small", 1).total_bytes
    assert counted / peak_bytes(run, tmp_path) == pytest.approx(1, abs=0.1 if run.experiment.training else 0.03)


@pytest.mark.parametrize(("channels", "widths", "blocks"), [(1, (2, 4, 8, 16), 1), (3, (32, 48, 64, 64), 4)])
@pytest.mark.parametrize("axes", [2, 3])
def test_parameters_are_drunet_s(channels, widths, blocks, axes):
    network = DRUNet(channels, channels, nc=widths, nb=blocks, pretrained=None, dim=axes)
    size = {"image": [channels] + [64] * axes, "denoiser_channels": list(widths), "denoiser_blocks": blocks}
    assert parameters(small(size=size).problem_size) == sum(p.numel() for p in network.parameters())
