"""Every mistake in a configuration is one line that names file and key, and the nearest valid word."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import yaml

from trisect.config.loading import load, load_machine, load_study
from trisect.config.machine import Machine, Slurm
from trisect.config.plan import Sweep
from trisect.config.schemas import schemas
from trisect.errors import TrisectError

REPOSITORY = Path(__file__).parents[3]
CONFIG = REPOSITORY / "config"
SETTINGS = yaml.safe_load((CONFIG / "config.yaml").read_text())


def shipped(**overrides: object) -> Sweep:
    return load({**SETTINGS, **overrides}, CONFIG)


def mistake(**overrides: object) -> str:
    with pytest.raises(TrisectError) as raised:
        shipped(**overrides)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_shipped_sweep_covers_four_experiments_at_three_counts() -> None:
    runs = [(run.name, run.gpus) for run in shipped().runs()]
    names = ["inference_2d", "inference_3d", "training_2d", "training_3d"]
    assert runs == [(name, gpus) for name in names for gpus in (1, 2, 4)]


def test_published_sizes_are_those_of_the_study() -> None:
    sweep = shipped(size="published", gpus=[1, 2, 4, 8, 16, 32, 64])
    images = {name: experiment.sizes["published"].image for name, experiment in sweep.experiments.items()}
    assert images == {
        "inference_2d": [3, 8192, 8192],
        "inference_3d": [1, 512, 512, 512],
        "training_2d": [1, 4096, 4096],
        "training_3d": [1, 512, 512, 512],
    }
    assert {name: e.operators for name, e in sweep.experiments.items()} == {
        "inference_2d": 8,
        "inference_3d": 2,
        "training_2d": 4,
        "training_3d": 4,
    }
    assert sweep.experiments["training_2d"].unrolled_iterations == 5
    assert sweep.counts("training_3d") == [4, 8, 16, 32, 64]
    assert sweep.counts("inference_2d") == [1, 2, 4, 8, 16, 32, 64]


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"gpu": [1]}, ["config/config.yaml", "unknown key 'gpu'", "did you mean 'gpus'?"]),
        ({"predict": {"zzz": 1}}, ["unknown key 'predict.zzz'; there is fit"]),
        ({"iterations": {"zzz": 1}}, ["unknown key 'iterations.zzz'; there are measured, unprofiled, warmup"]),
        ({"results": 2026}, ['results: 2026 is no text in YAML; put it in quotes: results: "2026"']),
        ({"iterations": {"mesured": 3}}, ["unknown key 'iterations.mesured'", "did you mean 'measured'?"]),
        ({"gpus": [0]}, ["gpus.0", "greater than or equal to 1", "got 0"]),
        ({"gpus": [-2]}, ["gpus.0", "greater than or equal to 1", "got -2"]),
        ({"gpus": [2, 1, 2]}, ["gpus", "2 is there twice"]),
        ({"gpus": [1.5]}, ["gpus.0", "valid integer", "got 1.5"]),
        ({"gpus": ["four"]}, ["gpus.0", "valid integer", "got four"]),
        ({"gpus": []}, ["gpus", "at least 1 item"]),
        ({"gpus": [1, 6]}, ["gpus: 6", "above the node size 4", "use 4 or 8"]),
        ({"experiments": ["inference2d"]}, ["no 'inference2d'", "did you mean 'inference_2d'?"]),
        ({"machine": "laptp"}, ["machine", "no 'laptp'", "did you mean 'laptop'?"]),
        ({"size": "publishd"}, ["size", "no size 'publishd'", "did you mean 'published'?"]),
    ],
)
def test_mistakes_in_the_settings(overrides: dict[str, object], words: list[str]) -> None:
    message = mistake(**overrides)
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"operators": 0}, ["config/experiments/mine.yaml", "operators", "got 0"]),
        ({"unrolled_iterations": 0, "mode": "training"}, ["unrolled_iterations", "got 0"]),
        ({"unrolled_iterations": 2}, ["unrolled_iterations is for mode training"]),
        ({"mode": "infer"}, ["mode", "'inference' or 'training'", "got infer"]),
        ({"weights": "nowhere.pt"}, ["weights", "no file 'nowhere.pt'"]),
        ({"operatrs": 8}, ["unknown key 'operatrs'", "did you mean 'operators'?"]),
        ({"patch": 192}, ["sizes.laptop", "patch 192 must be smaller than the image", "192"]),
        ({"overlap": 200}, ["sizes.laptop", "overlap 200 must be smaller"]),
        ({"check_at": "tny"}, ["sizes.laptop.check_at", "no size 'tny'"]),
        ("not: [valid", ["config/experiments/mine.yaml", "not readable as YAML"]),
    ],
)
def test_mistakes_in_an_experiment(tmp_path: Path, change: dict[str, object] | str, words: list[str]) -> None:
    folder = config_with_experiment(tmp_path, change)
    with pytest.raises(TrisectError) as raised:
        load({**SETTINGS, "experiments": ["mine"]}, folder)
    assert "\n" not in str(raised.value)
    assert all(word in str(raised.value) for word in words), str(raised.value)


@pytest.mark.parametrize("taken", ["figures", "probe", "study"])
def test_an_experiment_is_not_named_like_a_folder_of_the_results(tmp_path: Path, taken: str) -> None:
    folder = config_with_experiment(tmp_path, {})
    (folder / "experiments/mine.yaml").rename(folder / f"experiments/{taken}.yaml")
    with pytest.raises(TrisectError, match=rf"config/experiments/{taken}\.yaml: results/{taken}/ holds something else"):
        load(SETTINGS, folder)


def config_with_experiment(tmp_path: Path, change: dict[str, object] | str) -> Path:
    """A config folder with one experiment, mine.yaml, that differs from inference_2d by `change`."""
    (tmp_path / "experiments").mkdir()
    (tmp_path / "machines").symlink_to(CONFIG / "machines")
    target = tmp_path / "experiments" / "mine.yaml"
    if isinstance(change, str):
        target.write_text(change)
        return tmp_path
    content = yaml.safe_load((CONFIG / "experiments" / "inference_2d.yaml").read_text())
    for key, value in change.items():
        (content["sizes"]["laptop"] if key in ("patch", "overlap", "check_at") else content)[key] = value
    target.write_text(yaml.safe_dump(content))
    return tmp_path


def test_a_run_is_not_repeated_for_what_it_does_not_depend_on(tmp_path: Path) -> None:
    folder = config_with_experiment(tmp_path, {})
    before = load({**SETTINGS, "experiments": ["mine"]}, folder).run("mine", 2).payload()
    content = yaml.safe_load((folder / "experiments" / "mine.yaml").read_text())
    content["sizes"]["published"]["patch"] = 256
    reordered = dict(reversed(content.items()))
    (folder / "experiments" / "mine.yaml").write_text(yaml.safe_dump(reordered, sort_keys=False))
    assert load({**SETTINGS, "experiments": ["mine"], "gpus": [2]}, folder).run("mine", 2).payload() == before
    assert load({**SETTINGS, "experiments": ["mine"], "seed": 1}, folder).run("mine", 2).payload() != before


@pytest.mark.parametrize(
    ("overrides", "runs", "probes"),
    [
        (
            {},
            "ef054b3aeb7666f7d2bd43697af5fb613e927583461bd0b010c3e200d3a82b89",
            "ccd232af9d54635e5e844967df2a74df0cdcfb2f8898d62b9425f36d9c74f13a",
        ),
        (
            {"machine": "v100", "size": "published", "gpus": [1, 2, 4, 8, 16, 32, 64]},
            "c476c7cb90f89b501932dacc395deb57a5109a2458ce20daf8e8d6286dab4080",
            "ee2401e2259a524b98379fec8219428fa809c642bd661c615dc4ab0fc61b075d",
        ),
    ],
)
def test_a_new_version_measures_nothing_again(overrides: dict[str, object], runs: str, probes: str) -> None:
    """The payloads, by which Snakemake decides, are those of version 0.1; change a hash only to measure anew."""
    sweep = shipped(**overrides)
    for launched, sha256 in ((sweep.runs(), runs), (sweep.probes(), probes)):
        assert hashlib.sha256("\n".join(one.payload() for one in launched).encode()).hexdigest() == sha256


def test_a_single_count_outside_the_sweep_can_be_run_but_not_an_impossible_one() -> None:
    sweep = shipped(gpus=[1, 2])
    assert sweep.run("inference_2d", 8).gpus == 8
    for gpus, words in [(6, "no multiple"), (0, "no GPU count")]:
        with pytest.raises(TrisectError, match=words):
            sweep.run("inference_2d", gpus)
    with pytest.raises(TrisectError, match="does not fit on 2"):
        shipped(size="published").run("training_3d", 2)


def test_bounds_of_whole_pieces() -> None:
    run = shipped().run("inference_2d", 16)
    assert run.bounds() == {"tiles": 36 / (16 * 3), "operators": 0.5}


def test_the_template_of_a_cluster_is_complete_and_of_no_site() -> None:
    """Every key is there with a comment, except what would carry another machine's rates into predictions."""
    machine = load_machine("slurm", CONFIG)
    assert (machine.links, machine.compute_jitter, machine.slurm.modules) == (None, 0, [])
    lines = [line for line in (CONFIG / "machines/slurm.yaml").read_text().splitlines() if not line.startswith("#")]
    assert [line for line in lines if " # " not in line] == []
    keys = {line.split(":")[0] for line in lines}
    assert keys >= set(Machine.model_fields) - {"links", "compute_jitter", "probe"}
    assert keys >= {f"  {name}" for name in Slurm.model_fields}


@pytest.mark.parametrize("name", sorted(schemas()))
def test_schema_files_are_those_of_the_models(name: str) -> None:
    stored = json.loads((REPOSITORY / "workflow" / "schemas" / f"{name}.schema.json").read_text())
    assert stored == schemas()[name], "run `make schemas`"


@pytest.mark.parametrize("name", sorted(schemas()))
def test_every_key_is_described(name: str) -> None:
    schema = schemas()[name]
    parts = [schema, *schema.get("$defs", {}).values()]  # type: ignore[attr-defined]
    keys = [(key, value) for part in parts for key, value in part["properties"].items()]
    bare = [key for key, value in keys if "description" not in value and "$ref" not in value]
    assert bare == []


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("machines/v100.yaml", "pair_gb_per_s: 40", "pair_gb_per_s: 0", ["v100.yaml", "links.pair_gb_per_s", "got 0"]),
        ("machines/v100.yaml", "pair_gb_per_s: 40", "pair_gb_per_s: .inf", ["links.pair_gb_per_s", "finite"]),
        ("machines/v100.yaml", "  pair_gb_per_s: 40", "", ["v100.yaml: links.pair_gb_per_s: Field required"]),
        ("machines/v100.yaml", "ring: 10.5", "ring: -1", ["links.network_gb_per_s.ring", "greater than 0 (got -1)"]),
        ("machines/v100.yaml", "    ring: 10.5", "", ["v100.yaml", "links", "no rate for 'ring'"]),
        ("machines/v100.yaml", "step_us: 12", "step_us: -1", ["links.step_us", "greater than or equal to 0 (got -1)"]),
        ("machines/v100.yaml", "    tree: 17", "", ["v100.yaml", "links", "no rate for 'tree'"]),
        (
            "machines/v100.yaml",
            'OMP_NUM_THREADS: "10"',
            "OMP_NUM_THREADS: 10",
            ['v100.yaml: environment.OMP_NUM_THREADS: 10 is no text in YAML; put it in quotes: OMP_NUM_THREADS: "10"'],
        ),
        ("machines/v100.yaml", "  hint: nomultithread", "  hint: null", ["slurm.extra.hint"]),
        (
            "machines/v100.yaml",
            'OMP_NUM_THREADS: "10"',
            "A: true",
            ['true is no text in YAML; put it in quotes: A: "true"'],
        ),
        ("machines/v100.yaml", "[pytorch-gpu/py3/2.8.0]", "[2.8]", ["slurm.modules.0: 2.8", 'put it in quotes: "2.8"']),
        (
            "machines/v100.yaml",
            "  partition:",
            "  partitio:",
            ["unknown key 'slurm.partitio'; did you mean 'partition'?"],
        ),
        ("machines/v100.yaml", "  step_us:", "  nodes:", ["unknown key 'links.nodes'; did you mean 'tree_nodes'?"]),
        ("machines/v100.yaml", "  step_us:", "  qos:", ["'links.qos'; there are network_gb_per_s, pair_gb_per_s"]),
        ("study.yaml", "        tiles_s: 172", "        tils_s: 172", ["denoiser.tils_s'; did you mean 'tiles_s'?"]),
        (
            "study.yaml",
            "        tiles_s: 172",
            "        zzz: 172",
            ["there are image_all_reduces, operators_s, other_all"],
        ),
        ("study.yaml", "tiles_s: 172", "tile_s: 172", ["config/study.yaml", "did you mean 'tiles_s'?"]),
        ("study.yaml", "  inference_3d:", "  inference_4d:", ["config/study.yaml", "did you mean 'inference_3d'?"]),
    ],
)
def test_mistakes_in_what_the_model_reads(tmp_path: Path, name: str, old: str, new: str, words: list[str]) -> None:
    folder = tmp_path / "config"
    shutil.copytree(CONFIG, folder)
    content = (folder / name).read_text()
    assert old in content
    (folder / name).write_text("\n".join(line.replace(old, new) for line in content.splitlines()))
    with pytest.raises(TrisectError) as raised:
        load_study(folder)
        load_machine("v100", folder)
    assert all(word in str(raised.value) for word in words), raised.value
    assert "\n" not in str(raised.value)
