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


BENCHMARK = yaml.safe_load((REPOSITORY / "tests/unit/model/published_v100_benchmark.yaml").read_text())["experiments"]
"""What the public benchmark's own files say of the four experiments."""


@pytest.mark.parametrize("name", BENCHMARK)
def test_published_sizes_are_those_of_the_benchmark(name: str) -> None:
    known = BENCHMARK[name]
    experiment = shipped(size="published").experiments[name]
    size = experiment.sizes["published"]
    assert experiment.problem in known["physics"].replace("-", "_").replace(" ", "_")
    assert (experiment.operators, size.image[0]) == (known["operators"], known["channels"])
    assert experiment.unrolled_iterations == known.get("iterations", 1)
    for key in ("noise", "step", "batch", "patch", "overlap", "checkpoint"):
        assert getattr(size, key) == known.get(key, getattr(size, key)), key
    assert size.start == (known.get("start") and known["start"].replace("-", "_"))
    assert experiment.relaxation == known.get("relaxation")
    assert experiment.denoiser_sigma == known.get("denoiser_sigma", experiment.denoiser_sigma)
    assert (size.denoiser_channels, size.denoiser_blocks) == ([64, 128, 256, 512], 4)  # DRUNet as it is published
    if experiment.problem == "super_resolution":
        assert experiment.parameters == {"factor": 2, "kernel": 5, "sigma": 1}


def test_published_images_and_counts_are_those_of_the_study() -> None:
    sweep = shipped(size="published", machine="v100", gpus=[1, 2, 4, 8, 16, 32, 64])
    images = {name: sweep.experiments[name].sizes["published"].image for name in BENCHMARK}
    assert images == {
        "inference_2d": [3, 8192, 8192],
        "inference_3d": [1, 512, 512, 512],
        "training_2d": [3, 4096, 4096],
        "training_3d": [1, 512, 512, 512],
    }
    assert sweep.counts("training_3d") == [4, 8, 16, 32, 64]
    assert sweep.counts("inference_2d") == [1, 2, 4, 8, 16, 32, 64]


@pytest.mark.parametrize("name", BENCHMARK)
def test_the_laptop_size_is_the_published_one_but_smaller(name: str) -> None:
    """Tiles of DRUNet's own widths: others it pads, and 24 pixels a side to 32 are 2.4 times the work in 3D."""
    experiment = shipped().experiments[name]
    laptop, published = experiment.sizes["laptop"], experiment.sizes["published"]
    assert all(n % 8 == 0 and n >= 32 for n in laptop.window)
    assert len(laptop.pixels) == len(published.pixels)
    smaller = {"image", "patch", "overlap", "denoiser_channels", "denoiser_blocks", "truth", "weights", "check_at"}
    assert laptop.model_dump(exclude=smaller) == published.model_dump(exclude=smaller)


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
        ({"weights": "nowhere.pt"}, ["config/experiments/mine.yaml", "no file 'nowhere.pt'"]),
        ({"truth": "nowhere.png"}, ["config/experiments/mine.yaml", "no file 'nowhere.png'"]),
        ({"relaxation": 2, "mode": "training"}, ["relaxation is for mode inference"]),
        ({"start": "zeros", "mode": "training"}, ["sizes.laptop.start", "training starts from the adjoint"]),
        ({"start": "noise"}, ["sizes.laptop.start", "'zeros', 'adjoint' or 'pseudo_inverse'"]),
        ({"checkpoint": "sometimes"}, ["sizes.laptop.checkpoint", "'always', 'auto' or 'never'"]),
        ({"patch": 0}, ["sizes.laptop.patch", "give a whole number from 1 on, a list with one per axis, or none"]),
        ({"patch": [32, True]}, ["sizes.laptop.patch", "give a whole number from 1 on"]),
        ({"patch": []}, ["sizes.laptop.patch", "give a whole number from 1 on"]),
        ({"patch": [32, 32, 32]}, ["sizes.laptop", "patch [32, 32, 32] has 3 axes, the image has 2"]),
        ({"overlap": [-1, 8]}, ["sizes.laptop.overlap", "give a whole number from 0 on, a list with one per axis"]),
        ({"patch": [32, 192]}, ["sizes.laptop", "patch 192 must be smaller than the image", "patch: none"]),
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


SIZE_KEYS = ("patch", "overlap", "check_at", "weights", "truth", "start", "checkpoint", "batch", "image", "step")


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
        (content["sizes"]["laptop"] if key in SIZE_KEYS else content)[key] = value
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
            "63840151659f6c915b7107e5e7360207d007580c6f3e59348d9f25add9fd67ac",
            "ccd232af9d54635e5e844967df2a74df0cdcfb2f8898d62b9425f36d9c74f13a",
        ),
        (
            {"machine": "v100", "size": "published", "gpus": [1, 2, 4, 8, 16, 32, 64]},
            "0c01aff442b8fe2cbe360ec47fcb136d0cefad5d11f66a45bce4cb25b8ffe4ac",
            "ee2401e2259a524b98379fec8219428fa809c642bd661c615dc4ab0fc61b075d",
        ),
    ],
)
def test_a_new_version_measures_nothing_again(overrides: dict[str, object], runs: str, probes: str) -> None:
    """The payloads, by which Snakemake decides, are those of version 0.3; change a hash only to measure anew."""
    sweep = shipped(**overrides)
    for launched, sha256 in ((sweep.runs(), runs), (sweep.probes(), probes)):
        assert hashlib.sha256("\n".join(one.payload() for one in launched).encode()).hexdigest() == sha256


def test_a_single_count_outside_the_sweep_can_be_run_but_not_an_impossible_one() -> None:
    sweep = shipped(gpus=[1, 2])
    assert sweep.run("inference_2d", 8).gpus == 8
    for gpus, words in [(6, "no multiple"), (0, "no GPU count")]:
        with pytest.raises(TrisectError, match=words):
            sweep.run("inference_2d", gpus)
    with pytest.raises(TrisectError, match="does not fit on 2 GPUs of 32 GiB; use 3 or more"):
        shipped(size="published", machine="v100", gpus=[4]).run("training_3d", 2)


def test_tf32_is_arithmetic_of_gpus() -> None:
    assert "precision: tf32 is arithmetic of NVIDIA GPUs" in mistake(precision="tf32")
    assert "precision" in mistake(precision="half")
    assert shipped(precision="amp").run("inference_2d", 2).precision == "amp"
    assert shipped(precision="tf32", machine="v100").run("inference_2d", 2).precision == "tf32"


@pytest.mark.parametrize(
    ("gpus", "batch", "said"),
    [
        ([1, 2], 8, None),  # both keep their activations in the one batch that they have
        ([1, 2], 1, None),  # both have several
        ([1, 2], 2, "with auto, rank 0 of 2 keeps its activations and rank 0 of 1 checkpoints them"),
        ([3], 1, "with auto, rank 1 of 3 keeps its activations and rank 0 of 3 checkpoints them"),
    ],
)
def test_auto_checkpointing_that_would_differ_is_refused(
    tmp_path: Path, gpus: list[int], batch: int, said: str | None
) -> None:
    """deepinv checkpoints where a rank has several batches: here of 4 tiles."""
    change = {"mode": "training", "step": 0.8, "image": [3, 64, 64], "start": None, "truth": None}
    folder = config_with_experiment(tmp_path, change | {"checkpoint": "auto", "batch": batch})
    file = folder / "experiments" / "mine.yaml"
    content = yaml.safe_load(file.read_text())
    del content["sizes"]["published"]  # an inference's
    file.write_text(yaml.safe_dump(content))
    settings = {**SETTINGS, "experiments": ["mine"], "gpus": gpus}
    if said is None:
        load(settings, folder)
    else:
        with pytest.raises(TrisectError, match=said + r".*use always or never"):
            load(settings, folder)


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
