"""The weights that are shipped denoise, and the script that trains them does."""

import runpy
from pathlib import Path

import pytest
import torch
import yaml
from deepinv.models import DRUNet

from trisect.worker.correctness import psnr_db
from trisect.worker.drunet import near_identity
from trisect.worker.scene import photograph

ROOT = Path(__file__).parents[3]
LAPTOP = yaml.safe_load((ROOT / "config/experiments/inference_2d.yaml").read_text())["sizes"]["laptop"]


@pytest.fixture(name="script", scope="module")
def _script():
    return runpy.run_path(str(ROOT / "examples/train_denoiser.py"))


@pytest.mark.parametrize(("sigma", "gain_db"), [(0.005, 0.3), (0.02, 3), (0.05, 5), (0.1, 7)])
def test_shipped_weights_denoise_a_photograph_that_they_have_not_seen(sigma, gain_db):
    network = DRUNet(3, 3, nc=LAPTOP["denoiser_channels"], nb=LAPTOP["denoiser_blocks"], pretrained=None)
    network.load_state_dict(torch.load(ROOT / LAPTOP["weights"], weights_only=True))
    clean = photograph("photograph", LAPTOP["image"])
    noisy = clean + sigma * torch.randn(clean.shape, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert psnr_db(network.eval()(noisy, sigma), clean) > psnr_db(noisy, clean) + gain_db


def test_the_photograph_is_none_that_is_trained_on(script):
    assert not any("hopper" in name for name in script["PHOTOGRAPHS"])


def test_training_lowers_the_noise_that_is_left(script, monkeypatch, capsys):
    """On smooth images, which are learnt in a few steps."""
    images = [photograph("photograph", [3, 96, 96])[0].mean(dim=(1, 2), keepdim=True).expand(3, 96, 96)]
    monkeypatch.setitem(script["train"].__globals__, "photographs", lambda: images)
    torch.manual_seed(0)
    network = DRUNet(3, 3, nc=(8, 8, 8, 8), nb=1, pretrained=None)
    near_identity(network)
    script["train"](network, steps=150, seed=0)
    first, last = (float(line.split("left ")[1].split()[0]) for line in capsys.readouterr().out.splitlines())
    assert last > first + 0.3
