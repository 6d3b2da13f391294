"""A simulated run, decomposed, gives the model's own times; and bad input to `trisect study` leaves nothing."""

import shutil

import pytest
from known import trace_of
from modelled import CONFIG

from trisect import cli
from trisect.analysis.decomposition import decompose
from trisect.model.predict import of_machine, predict
from trisect.model.simulate import job
from trisect.results.tables import MODELLED_TIMES


@pytest.mark.parametrize("gpus", [1, 4, 8, 12])
@pytest.mark.parametrize("name", ["inference_2d", "training_2d", "training_3d"])
def test_without_jitter_the_decomposition_is_the_prediction(problems, v100, name, gpus):
    steady = of_machine(problems[name], v100.model_copy(update={"compute_jitter": 0.0}), v100.links)
    made_up = job(steady, gpus, iterations=2, seed=0)
    found = decompose(trace_of(made_up)).table.set_index("section")
    told = predict(steady, [gpus], iterations=1).set_index("section")
    for section in told.index:
        assert found.loc[section, list(MODELLED_TIMES)].tolist() == pytest.approx(
            told.loc[section, list(MODELLED_TIMES)].tolist(), rel=1e-6, abs=1e-7
        )


def test_jitter_is_another_every_iteration_and_the_same_for_one_seed(problems, v100):
    ask = of_machine(problems["inference_3d"], v100, v100.links), 4
    first, again, other = (job(*ask, iterations=2, seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert first != other
    assert first.iterations[0] != first.iterations[1]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("machine: v100", "machine: laptop", "config/machines/laptop.yaml: no links"),
        ("size: published", "size: publisht", "inference_2d has no size 'publisht'"),
        ("gpus: [1, 2,", "gpus: [1, 6,", "6 is above the node size 4"),
        ("gpus: [1, 2,", "gpus: [128,", "needs 32 nodes of 4, the machine has 16"),
        ("  inference_3d:", "  inference_4d:", "did you mean 'inference_3d'?"),
    ],
)
def test_a_wrong_study_is_one_line_and_leaves_nothing(tmp_path, capsys, old, new, words):
    shutil.copytree(CONFIG, tmp_path / "config")
    study = tmp_path / "config" / "study.yaml"
    assert old in study.read_text()
    study.write_text(study.read_text().replace(old, new))
    with pytest.raises(SystemExit) as stopped:
        cli.main(["study", "--config", str(tmp_path / "config"), "--out", str(tmp_path / "out")])
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_output_folder_that_is_a_file_is_refused(tmp_path, capsys):
    (tmp_path / "out").write_text("")
    with pytest.raises(SystemExit):
        cli.main(["study", "--config", str(CONFIG), "--out", str(tmp_path / "out")])
    assert "cannot write to" in capsys.readouterr().err
