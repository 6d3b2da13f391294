"""`trisect predict`: numbers that are the model's, answers in words, quickly and without torch; bad input in a line."""

import shutil
import subprocess
import sys

import pytest
from modelled import CONFIG

from trisect import cli


def said(capsys, *arguments):
    assert cli.main(["predict", "--machine", "v100", "--config", str(CONFIG), *arguments]) == 0
    return capsys.readouterr().out


def test_default_goes_to_1024_and_answers(capsys):
    text = said(capsys, "--experiment", "inference_2d")
    table = {line.split()[0]: line.split() for line in text.splitlines() if line[:5].strip().isdigit()}
    assert list(table) == [str(2**k) for k in range(11)]
    assert table["8"][1] == "tree"
    (head,) = (line.split() for line in text.splitlines() if "transfer_s" in line)
    assert float(table["64"][head.index("transfer_s")]) == pytest.approx(0.305, abs=0.001)
    assert "modelled, not measured" in text
    assert "at least 80 % up to 8 GPUs." in text
    assert "at least 50 % up to 32 GPUs." in text
    assert "Transfer takes at least as long as the slowest rank's compute from 128 GPUs on." in text
    assert "network and links twice as fast" in text
    assert "Counts above 64 are more than this machine has" in text
    assert "Counts above 256 leave some without a tile" in text


def test_counts_and_sections_can_be_asked_for(capsys):
    text = said(capsys, "--experiment", "training_3d", "--gpus", "64", "4", "--sections")
    rows = [line.split()[:3] for line in text.splitlines() if line[:5].strip().isdigit()]
    sections = ["forward", "backward", "total"]
    assert rows == [["4", "ring", name] for name in sections] + [["64", "ring", name] for name in sections]
    assert "Transfer stays shorter than the slowest rank's compute up to 64 GPUs." in text
    notes = [line for line in text.splitlines() if line.startswith("Note")]
    assert notes == [
        "Note: Rates and jitter (3.0 %) are those of config/machines/v100.yaml: what a published study measured on"
        " nodes of 4 V100 (docs/model.md)."
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--experiment", "inference_4d"], "no 'inference_4d' in config/study.yaml; did you mean 'inference_3d'?"),
        (["--experiment", "training_3d", "--gpus", "2"], "training_3d does not fit on 2; use 3 or more"),
        (["--experiment", "inference_2d", "--gpus", "6"], "6 is above the node size 4 and no multiple of it"),
        (["--experiment", "inference_2d", "--machine", "laptop"], "config/machines/laptop.yaml: no links"),
        (
            ["--experiment", "inference_2d", "--config", "nowhere"],
            "nowhere: no config folder here; call this in the project's folder, or pass --config DIR",
        ),
    ],
)
def test_bad_input_is_one_line(capsys, arguments, words):
    with pytest.raises(SystemExit) as stopped:
        said(capsys, *arguments)
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_no_torch_and_nothing_written(tmp_path):
    shutil.copytree(CONFIG, tmp_path / "config")
    before = sorted(tmp_path.rglob("*"))
    ask = "cli.main(['predict', '--machine', 'v100', '--experiment', 'inference_3d'])"
    heavy = "('torch', 'scipy.stats', 'matplotlib')"
    code = f"import sys; from trisect import cli; {ask}; sys.exit(sum(name in sys.modules for name in {heavy}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(tmp_path.rglob("*")) == before
