from pathlib import Path

import pytest
import yaml

from trisect.config.loading import load
from trisect.config.machine import Machine
from trisect.launch.preflight import outlook

CONFIG = Path(__file__).parents[3] / "config"
SWEEP = load(yaml.safe_load((CONFIG / "config.yaml").read_text()), CONFIG)


def machine(**changes: object) -> Machine:
    return SWEEP.machine.model_copy(update={"cores_per_node": 2, **changes})


@pytest.mark.parametrize(
    ("experiment", "gpus", "said"),
    [
        ("inference_2d", 2, []),
        ("inference_2d", 8, ["36 tiles on 8 ranks: load balance of at most 90%", "8 ranks share 2 cores"]),
        (
            "inference_2d",
            16,
            ["36 tiles on 16 ranks", "8 operators on 16 ranks: load balance of at most 50%", "16 ranks"],
        ),
    ],
)
def test_said_before_launch(experiment: str, gpus: int, said: list[str]) -> None:
    lines = outlook(SWEEP.run(experiment, gpus), machine())
    assert len(lines) == len(said)
    assert all(line.startswith(start) for line, start in zip(lines, said, strict=True))


def test_nodes_of_a_cluster_are_filled_not_exceeded() -> None:
    assert outlook(SWEEP.run("inference_2d", 4), machine(launcher="slurm", cores_per_node=4)) == []


def test_gpus_do_not_share_cores() -> None:
    assert outlook(SWEEP.run("inference_2d", 4), machine(device="cuda", backend="nccl")) == []
