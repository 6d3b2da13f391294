from pathlib import Path

import pytest
import yaml

from trisect.config.loading import load
from trisect.config.machine import Machine
from trisect.errors import TrisectError
from trisect.launch import preflight
from trisect.launch.preflight import left_out, require_device
from trisect.report.text.note_words import all_in_words

CONFIG = Path(__file__).parents[3] / "config"
SETTINGS = yaml.safe_load((CONFIG / "config.yaml").read_text())
SWEEP = load(SETTINGS, CONFIG)


def machine(**changes: object) -> Machine:
    return SWEEP.machine.model_copy(update={"cores_per_node": 2, **changes})


@pytest.mark.parametrize(
    ("experiment", "gpus", "said"),
    [
        ("inference_2d", 2, []),
        ("inference_2d", 8, ["36 tiles on 8 ranks: load balance of at most 90 %", "8 ranks share 2 cores"]),
        (
            "inference_2d",
            16,
            ["36 tiles on 16 ranks", "8 operators on 16 ranks: load balance of at most 50 %", "16 ranks"],
        ),
    ],
)
def test_said_before_launch(experiment: str, gpus: int, said: list[str]) -> None:
    lines = all_in_words(preflight.preflight(SWEEP.run(experiment, gpus), machine()))
    assert len(lines) == len(said)
    assert all(line.startswith(start) for line, start in zip(lines, said, strict=True))


def test_nodes_of_a_cluster_are_filled_not_exceeded() -> None:
    assert preflight.preflight(SWEEP.run("inference_2d", 4), machine(launcher="slurm", cores_per_node=4)) == []


def test_gpus_do_not_share_cores() -> None:
    assert preflight.preflight(SWEEP.run("inference_2d", 4), machine(device="cuda", backend="nccl")) == []


def test_counts_that_a_problem_does_not_fit_on_are_named() -> None:
    published = load({**SETTINGS, "size": "published", "machine": "v100", "gpus": [8, 2, 1, 4]}, CONFIG)
    assert all_in_words(left_out(published)) == [
        "training_3d does not fit on fewer than 3 at size published: left out at 1 and 2"
    ]
    assert left_out(SWEEP) == []


@pytest.mark.parametrize(("missing", "said"), [("torch", "torch is not installed"), ("deepinv", "deepinv is not")])
def test_a_device_check_without_the_extra_says_which_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str, said: str
) -> None:
    """In a process of its own, whose importlib finds no such module."""
    hidden = f"import importlib.util as u; f = u.find_spec; u.find_spec = lambda n: None if n == {missing!r} else f(n)"
    (tmp_path / "sitecustomize.py").write_text(hidden)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(TrisectError) as raised:
        require_device(machine(device="cuda", backend="nccl"))
    assert str(raised.value).startswith(said)
    assert str(raised.value).endswith("this command needs it: pip install 'trisect[sweep]'")
