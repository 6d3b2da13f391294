"""Which probes a machine asks for, and what it cannot ask for."""

import json
from pathlib import Path

import pytest
import yaml

from trisect.config.loading import load, load_machine
from trisect.config.plan import NCCL_ALGO, Sweep
from trisect.errors import TrisectError

CONFIG = Path(__file__).parents[3] / "config"


def sweep(tmp_path: Path, machine: str, gpus: list[int], **probe: object) -> Sweep:
    """The shipped configuration with this `probe` on a machine."""
    (tmp_path / "machines").mkdir()
    (tmp_path / "experiments").symlink_to(CONFIG / "experiments")
    content = yaml.safe_load((CONFIG / "machines" / f"{machine}.yaml").read_text()) | {"probe": probe}
    (tmp_path / "machines" / "mine.yaml").write_text(yaml.safe_dump(content))
    settings = yaml.safe_load((CONFIG / "config.yaml").read_text()) | {"machine": "mine", "gpus": gpus}
    return load(settings, tmp_path)


def test_a_machine_asks_for_nothing_but_what_is_chosen(tmp_path: Path) -> None:
    probes = sweep(tmp_path, "laptop", [4, 2]).probes()
    assert [(probe.gpus, probe.algorithm) for probe in probes] == [(2, "chosen"), (4, "chosen")]
    assert (probes[0].payload_bytes[0], probes[0].payload_bytes[-1], len(probes[0].payload_bytes)) == (
        1024,
        1 << 30,
        21,
    )
    assert probes[0].environment == {"OMP_NUM_THREADS": "1"}


def test_forced_algorithms_are_told_to_nccl_in_jobs_of_their_own(tmp_path: Path) -> None:
    probes = sweep(tmp_path, "v100", [8], algorithms=["ring", "tree"]).probes()
    assert [(probe.algorithm, probe.environment.get("NCCL_ALGO")) for probe in probes] == [
        ("chosen", None),
        ("ring", "Ring"),
        ("tree", "ring;allreduce:tree,tree"),
    ]
    assert len({probe.sha256() for probe in probes}) == 3


@pytest.mark.parametrize("algorithm", ["ring", "tree"])
def test_every_version_of_nccl_reads_the_order_alike(algorithm: str) -> None:
    """By both of its parsers: a list by collective, the first part for all; and words between commas."""
    order = NCCL_ALGO[algorithm].lower()
    first, *others = order.split(";")
    lists = {"allreduce": first, "broadcast": first} | dict(part.split(":") for part in others)
    assert set(lists["allreduce"].split(",")) == {algorithm}
    assert lists["broadcast"] == "ring"
    assert {word for word in order.split(",") if word in ("ring", "tree")} == {algorithm}


def test_a_probe_is_not_repeated_for_what_it_does_not_depend_on(tmp_path: Path) -> None:
    content = yaml.safe_load((CONFIG / "machines" / "laptop.yaml").read_text())
    before = sweep(tmp_path, "laptop", [2]).probe(2, "chosen").payload()
    changes = {"nodes": 16, "slurm": {"partition": "other"}, "cores_per_node": 99}
    (tmp_path / "machines" / "mine.yaml").write_text(yaml.safe_dump(content | changes))
    settings = yaml.safe_load((CONFIG / "config.yaml").read_text()) | {"machine": "mine", "seed": 3}
    assert load(settings, tmp_path).probe(2, "chosen").payload() == before


def test_asking_for_another_algorithm_measures_nothing_else_again(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    before = sweep(tmp_path / "a", "v100", [8]).probes()[0]
    after = sweep(tmp_path / "b", "v100", [8, 16], algorithms=["tree"]).probes()[0]
    assert before.payload() == after.payload()
    assert "algorithms" not in json.loads(after.payload())


@pytest.mark.parametrize(
    ("largest", "sizes"), [(4096, [1024, 2048, 4096]), (5000, [1024, 2048, 4096]), (8191, [1024, 2048, 4096])]
)
def test_sizes_double_as_far_as_they_go(tmp_path: Path, largest: int, sizes: list[int]) -> None:
    (probe,) = sweep(tmp_path, "laptop", [2], largest_bytes=largest).probes()
    assert probe.payload_bytes == sizes


@pytest.mark.parametrize(
    ("machine", "probe", "words"),
    [
        ("laptop", {"algorithms": ["ring"]}, "probe.algorithms are orders to NCCL; remove them here, where backend is"),
        ("v100", {"algorithms": ["mesh"]}, "probe.algorithms.0: Input should be 'ring' or 'tree' (got mesh)"),
        ("v100", {"algorithms": ["ring", "ring"]}, "probe.algorithms: 'ring' is there twice; name each once"),
        ("laptop", {"largest_bytes": 1024}, "probe: 1024 to 1024 bytes are fewer than 3 sizes, too few for latency"),
        ("laptop", {"smallest_bytes": 1023}, "probe.smallest_bytes: Input should be a multiple of 4 (got 1023)"),
        ("laptop", {"repetitions": 4}, "probe.repetitions: Input should be greater than or equal to 5 (got 4)"),
        ("laptop", {"seconds": 0}, "probe.seconds: Input should be greater than 0 (got 0)"),
        ("laptop", {"sizes": 3}, "unknown key 'probe.sizes'"),
    ],
)
def test_what_cannot_be_asked_for(tmp_path: Path, machine: str, probe: dict[str, object], words: str) -> None:
    with pytest.raises(TrisectError) as raised:
        sweep(tmp_path, machine, [4], **probe)
    assert f"config/machines/mine.yaml: {words}" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("gpus", "algorithm", "words"),
    [(2, "tree", "NCCL alone can be told to take a tree, the machine's backend is gloo"), (6, "chosen", "gpus: 6 is")],
)
def test_a_single_probe_that_cannot_be(tmp_path: Path, gpus: int, algorithm: str, words: str) -> None:
    with pytest.raises(TrisectError, match=words):
        sweep(tmp_path, "laptop", [2]).probe(gpus, algorithm)


def test_shipped_machines_can_be_probed() -> None:
    for machine in ("laptop", "v100"):
        assert load_machine(machine, CONFIG).probe.largest_bytes == 1 << 30
