"""`trisect compare`: folders in, a table and an exit code out."""

import fabricated
import pandas as pd
import pytest
from known import job_of

from trisect import cli
from trisect.errors import TrisectError
from trisect.pipeline.compare import compare_folders
from trisect.pipeline.decompose import write_decomposition
from trisect.results.layout import Layout, RunLayout
from trisect.results.tables import COMPARISON
from trisect.synthetic.kineto_writer import write_job

JITTER_MS = (0.0, 0.3, 0.1, 0.2, 0.4, 0.05, 0.25, 0.15)


def write_run(folder, compute_ms, *, experiment=None, gpus=2, **record):
    """A run of `gpus` ranks whose rank 0 takes `compute_ms` and a known jitter."""
    arrivals = [(compute_ms + jitter, *[5] * (gpus - 1)) for jitter in JITTER_MS]
    write_job(job_of(*arrivals, name="gradient", barrier_ns=1000), folder / "traces")
    files = RunLayout(folder)
    write_decomposition(folder / "traces", files, sections=["gradient"])
    if experiment:
        fabricated.record(experiment, gpus, **record).write(files.record)
    return folder


@pytest.fixture(scope="module", name="sweeps")
def _sweeps(tmp_path_factory):
    """Results folders: one as it was, one in which rank 0 is 2 ms slower, on another torch, with another count too."""
    root = tmp_path_factory.mktemp("sweeps")
    versions = {"before": {"torch": "2.10"}, "after": {"torch": "2.14"}}
    for name, compute_ms in {"before": 6, "after": 8}.items():
        run = Layout(root / name).run("inference_2d", 2).folder
        write_run(run, compute_ms, experiment="inference_2d", versions=versions[name])
    write_run(Layout(root / "after").run("inference_2d", 4).folder, 6, experiment="inference_2d", gpus=4)
    return root


def run(*arguments):
    return cli.main(["compare", *map(str, arguments)])


def test_worse_is_said_written_and_exits_with_1(sweeps, tmp_path, capsys):
    out = tmp_path / "c.csv"
    assert run(sweeps / "before", sweeps / "after", "--out", out) == 1
    table = pd.read_csv(out)
    assert list(table.columns) == list(COMPARISON)
    span = table.set_index(["section", "metric"]).loc["gradient", "span_s"]
    assert span["difference"] == pytest.approx(2e-3)
    assert span["verdict"] == "worse"
    printed = capsys.readouterr().out
    (row,) = (line for line in printed.splitlines() if "gradient" in line and " span " in line)
    assert row.split()[:6] == ["inference_2d", "at", "2", "gradient", "span", "7.18"]
    assert "2.00 ms" in row and row.endswith("worse")
    assert f"{sweeps / 'after'} compared with {sweeps / 'before'}: 20 differences: " in printed
    assert "Changed: torch: 2.10 before, 2.14 after." in printed
    assert "Only after: inference_2d at 4." in printed


def test_better_or_the_same_exits_with_0(sweeps, tmp_path, capsys):
    times = ["--metric", "span_s", "compute_s", "wait_s", "--out", tmp_path / "c.csv"]
    assert run(sweeps / "after", sweeps / "before", *times) == 0
    assert "Only before: inference_2d at 4." in capsys.readouterr().out
    assert run(sweeps / "before", sweeps / "before", "--out", tmp_path / "c.csv") == 0
    assert set(pd.read_csv(tmp_path / "c.csv")["verdict"]) == {"within noise"}


def test_two_jobs_without_a_record(tmp_path, capsys):
    before, after = write_run(tmp_path / "a", 6), write_run(tmp_path / "b", 8)
    found = compare_folders(before, after, ["span_s"])
    assert list(found.table["difference"]) == pytest.approx([2e-3, 2e-3])
    assert found.only_before == found.only_after == found.changed == []
    assert run(before, after, "--metric", "span_s", "--out", tmp_path / "c.csv") == 1
    assert f"{after} compared with {before}: 2 differences: 2 worse." in capsys.readouterr().out


def test_two_jobs_of_other_counts(tmp_path):
    before, after = write_run(tmp_path / "a", 6), write_run(tmp_path / "b", 6, gpus=3)
    with pytest.raises(TrisectError, match=r"a has a job of 2 ranks, .*/b has a job of 3 ranks: no run in common"):
        compare_folders(before, after)


def test_what_does_not_compare_is_one_line_and_exits_with_2(sweeps, tmp_path, capsys):
    two, four = (Layout(sweeps / "after").run("inference_2d", n).folder for n in (2, 4))
    other_size = write_run(tmp_path / "size", 6, experiment="inference_2d", size="laptop")
    other = write_run(tmp_path / "other", 6, experiment="training_2d")
    for after, words in {
        four: "no run in common",
        other: "has training_2d at 2: no run in common",
        other_size: "is of size published in",
        tmp_path / "nothing": "no such file",
    }.items():
        with pytest.raises(SystemExit) as stopped:
            run(two, after, "--out", tmp_path / "c.csv")
        assert stopped.value.code == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1
    assert not (tmp_path / "c.csv").exists()


def test_a_damaged_decomposition_is_named(tmp_path):
    folder = write_run(tmp_path / "a", 6)
    (folder / "iterations.parquet").write_bytes(b"no parquet")
    with pytest.raises(TrisectError, match=r"iterations\.parquet: damaged, .*; make it again: trisect decompose"):
        compare_folders(folder, folder)


@pytest.mark.parametrize("wrong", [["--least", "2"], ["--least", "nan"], ["--metric", "speed"], []])
def test_wrong_arguments_exit_with_2(wrong):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["compare", "a", *(["b"] if wrong else []), *wrong])
    assert stopped.value.code == 2
