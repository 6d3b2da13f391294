"""The command line: files and table for good input, one line and no file for bad."""

import subprocess
import sys

import pandas as pd
import pytest
from known import job_of

from trisect import cli
from trisect.results.tables import DECOMPOSITION
from trisect.synthetic.kineto_writer import write_job

FILES = {"decomposition.csv", "collectives.csv", "iterations.parquet", "ranks.parquet", "findings.md"}


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
    assert "gradient" in printed
    assert "0.005" in printed  # compute_s would be 0.004, span_s is 0.0055
    findings = (out / "findings.md").read_text()
    assert findings.startswith("# Findings\n")
    assert "Only 2 iterations" in findings
    assert "Only 2 iterations" in printed


def test_no_section_named_takes_each_iteration_whole(traces, tmp_path):
    assert cli.main(["decompose", str(traces), "--out", str(tmp_path / "out")]) == 0
    assert list(pd.read_csv(tmp_path / "out" / "decomposition.csv")["section"]) == ["iteration", "total"]


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

    monkeypatch.setattr(pd.DataFrame, "to_parquet", full)
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
    for option in ("--section NAME", "--iteration NAME", "--out OUT"):
        assert option in text
    assert text.count("(default: ") == 3


def test_the_command_needs_no_torch():
    code = "import sys, trisect.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
