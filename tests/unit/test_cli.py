"""The command line: files and tables for good input, one line and no file for bad, and a start without waiting."""

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from known import job_of
from samples import SAMPLES, needs_samples

from trisect import cli
from trisect.results.tables import DECOMPOSITION
from trisect.synthetic.kineto_writer import write_job

CONFIG = Path(__file__).parents[2] / "config"
FILES = {"decomposition.csv", "collectives.csv", "iterations.parquet", "ranks.parquet", "notes.json", "findings.md"}


@pytest.fixture(name="traces")
def _traces(tmp_path):
    write_job(job_of((3, 5), (4, 4), name="gradient", barrier_ns=1000), tmp_path / "traces")
    return tmp_path / "traces"


def refused(*arguments):
    with pytest.raises(SystemExit) as stopped:
        cli.main([str(argument) for argument in arguments])
    return stopped.value.code == 2


def test_decompose_writes_and_prints(traces, tmp_path, capsys):
    out = tmp_path / "out" / "deep"
    assert cli.main(["decompose", str(traces), "--section", "gradient", "--out", str(out)]) == 0
    assert {path.name for path in out.iterdir()} == FILES
    table = pd.read_csv(out / "decomposition.csv")
    assert list(table.columns) == list(DECOMPOSITION)
    assert table.loc[0, "wait_s"] == pytest.approx(0.5e-3)
    printed = capsys.readouterr().out
    times, causes = (re.split(r"  +", line) for line in printed.splitlines() if line.startswith("gradient"))
    assert times == ["gradient", "2", "5.50 ms", "4.00 ms", "0 s", "1.00 ms", "500 µs", "0 s"]
    assert causes == ["gradient", "500 µs", "0 s", "0 s", "89 %", "82 %", "73 %", "rank 1 in 1 of 1"]
    assert not re.search(r"e-\d|nan", printed.split("\n- ")[0].lower())
    findings = (out / "findings.md").read_text()
    assert findings.startswith("# Findings\n")
    assert "Only 2 iterations" in findings
    assert "Only 2 iterations" in printed


def test_no_section_named_takes_each_iteration_whole(traces, tmp_path):
    assert cli.main(["decompose", str(traces), "--out", str(tmp_path / "out")]) == 0
    assert list(pd.read_csv(tmp_path / "out" / "decomposition.csv")["section"]) == ["iteration", "total"]


@pytest.mark.parametrize(
    "order", ["TRACES --section A", "--section A -- TRACES", "--section A TRACES", "--out O TRACES"]
)
@pytest.mark.parametrize("what", [".", "*.gz"])
def test_a_folder_or_files_before_or_after_the_sections(traces, tmp_path, order, what):
    named = {
        "TRACES": [str(traces)] if what == "." else sorted(map(str, traces.glob(what))),
        "A": ["gradient"],
        "O": [str(tmp_path / "out")],
    }
    arguments = [text for word in order.split() for text in named.get(word, [word])]
    assert cli.main(["decompose", *([] if "O" in order.split() else ["--out", str(tmp_path / "out")]), *arguments]) == 0
    section = pd.read_csv(tmp_path / "out" / "decomposition.csv")["section"][0]
    assert section == ("gradient" if "A" in order.split() else "iteration")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no traces are named"),
        (["--section", "a", "b"], "no traces are named"),
        (["--section", "TRACES"], "names only traces"),
        (["nowhere"], "nowhere: no such file"),
        (["TRACES", "--section", "gradien"], "did you mean 'gradient'? (trisect decompose --list shows all)"),
        (["TRACES", "--iteration", "ProfilerStop"], "did you mean 'ProfilerStep#k'?"),
    ],
)
def test_what_is_not_there_is_said_in_one_line(traces, capsys, arguments, words):
    assert refused("decompose", *(traces if one == "TRACES" else one for one in arguments))
    error = capsys.readouterr().err
    assert error.startswith("trisect: ") and error.count("\n") == 1 and words in error


def test_an_unknown_option_is_refused_with_the_usage(traces, capsys):
    assert refused("decompose", traces, "--sectoin", "gradient")
    assert "unrecognized arguments: --sectoin" in capsys.readouterr().err


def test_list_prints_the_annotations_and_writes_nothing(traces, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["decompose", "--list", str(traces)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("2 ranks; iterations are marked by ProfilerStep#k: 2 per rank, ")
    assert [re.split(r"  +", line) for line in lines[1:3]] == [
        ["per iteration", "ranks", "mean time", "annotation"],
        ["", "1", "2", "5.50 ms", "gradient"],
    ]
    assert lines[-1] == "trisect decompose --section gradient -- TRACES"
    assert cli.main(["decompose", "--list", "--iteration", "step", str(traces)]) == 0
    assert "--iteration NAME" in (printed := capsys.readouterr().out) and re.search(
        r" 2 +2 .*  ProfilerStep#k$", printed, re.M
    )
    assert [path.name for path in tmp_path.iterdir()] == ["traces"]


@needs_samples
def test_list_shows_the_names_of_a_public_trace_as_they_are(capsys):
    assert cli.main(["decompose", "--list", str(SAMPLES / "ddp_nccl_rank0_of_2.json.gz")]) == 0
    printed = capsys.readouterr().out
    assert re.search(r" 1 +1 +103 ms  ## forward ##\n.* 103 ms    DistributedDataParallel.forward\n", printed)
    assert "--section '## forward ##' '## backward ##'" in printed


def test_bad_input_is_one_line_and_leaves_nothing(traces, tmp_path, capsys):
    (traces / "rank-0001.json.gz").unlink()
    out = tmp_path / "out"
    assert refused("decompose", traces, "--out", out)
    error = capsys.readouterr().err
    assert error.startswith("trisect: ")
    assert error.count("\n") == 1
    assert not out.exists()


def test_what_stood_before_still_stands_after_a_failure(traces, tmp_path, monkeypatch):
    out = tmp_path / "out"
    assert cli.main(["decompose", str(traces), "--out", str(out)]) == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("trisect.pipeline.decompose.write_parquet", full)
    assert refused("decompose", traces, "--section", "gradient", "--out", out)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_out_that_cannot_be_written_is_said(traces, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert refused("decompose", traces, "--out", tmp_path / "file" / "out")
    assert "cannot write there" in capsys.readouterr().err


def test_help_explains_every_option_with_its_default(capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["decompose", "--help"])
    assert stopped.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for option in ("--list", "--section NAME", "--iteration NAME", "--out OUT"):
        assert option in text
    assert text.count("(default: ") == 3


def python(code, *arguments):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False
    )


LIGHT = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "deepinv", "snakemake", "submitit", "psutil", "pyarrow"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Blocker())
from trisect import cli
sys.exit(cli.main(sys.argv[1:]))
"""


def test_every_command_runs_on_the_light_install(traces, tmp_path):
    out = tmp_path / "out"
    commands = [
        ["decompose", traces, "--out", out],
        ["decompose", traces, "--list"],
        ["compare", out, out, "--out", tmp_path / "comparison.csv"],
        ["predict", "--machine", "v100", "--experiment", "training_2d", "--gpus", "1", "4", "--config", CONFIG],
    ]
    for command in commands:
        done = python(LIGHT, *command)
        assert (done.returncode, done.stderr) == (0, ""), command
    for module in ("study", "rates"):  # whose runs take long, or a sweep
        code = LIGHT.rsplit("\n", 3)[0] + f"\nimport trisect.pipeline.{module}"
        assert python(code).stderr == ""


def test_help_waits_for_no_import():
    for command in ([], ["decompose"], ["predict"], ["rates"], ["study"]):
        code = "import atexit, sys; from trisect import cli; atexit.register(lambda: print('pandas' in sys.modules))"
        assert python(f"{code}; cli.main(sys.argv[1:])", *command, "--help").stdout.endswith("False\n"), command
