"""From an experiment's table and NCCL's logs to rates.csv and `trisect rates`; and bad input in one line."""

import pandas as pd
import pytest
from fabricated import cluster_scaling
from filled import filled
from modelled import CONFIG

from trisect import cli
from trisect.config.loading import load_machine
from trisect.pipeline.rates import rates_of, write_rates
from trisect.results.layout import Layout
from trisect.results.tables import FITS, PAIRED_COLLECTIVES, RATES, SCALING, read_table

N = 800_000_000
TRANSFERS = {4: 2 * N * 3 / 4 / 100e9, 8: N / 20e9, 16: 2 * N * 15 / 16 / 10e9, 32: 2 * N * 31 / 32 / 8e9}
"""A ring in a node at 100 GB/s, a tree between two at 20, rings between more at 10 and 8."""


@pytest.fixture(name="layout")
def _layout(tmp_path):
    return Layout(tmp_path)


def write(layout, transfers=TRANSFERS, log=None):
    """An experiment e with one section, and at 8 the run's NCCL log; returns its folder."""
    layout.scaling("e").parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {"experiment": "e", "section": "denoiser", "gpus": gpus, "payload_bytes": N, "iterations": 10}
        | {"transfer_s": seconds, "transfer_s_lo": 0.9 * seconds, "transfer_s_hi": 1.25 * seconds}
        for gpus, seconds in ({1: 0.0} | transfers).items()
    ]
    filled(rows, SCALING).to_csv(layout.scaling("e"), index=False)
    run = layout.run("e", 8)
    if log is not None:
        run.nccl.mkdir(parents=True)
        (run.nccl / "nccl-host-1.log").write_text(log)
        message = {"section": "denoiser", "op": "all_reduce", "bytes": N}
        filled([message], PAIRED_COLLECTIVES).to_csv(run.collectives, index=False)
    return layout.scaling("e").parent


def fitted(layout, **fit):
    layout.fits.parent.mkdir()
    line = {"algorithm": "chosen", "ran": "ring", "reading": "ring", "nodes": 1, "nccl_version": "none"}
    filled([line | fit], FITS).to_csv(layout.fits, index=False)


def command(results, machine="v100", config=CONFIG):
    return cli.main(["rates", str(results), "--machine", machine, "--config", str(config)])


def test_the_log_of_a_run_decides(layout, capsys):
    log = (
        f"nRanks 8 nNodes 2\nAllReduce: {N} Bytes -> Algo TREE proto SIMPLE channel{{Lo..Hi}}={{0..1}}\n{N} Bytes -> Al"
    )
    assert command(write(layout, log=log)) == 0
    printed = capsys.readouterr().out
    at_8 = [line.split() for line in printed.splitlines() if line.split()[1] == "8"]
    assert [line[3:5] for line in at_8] == [["tree", "tree"]]
    assert "1 line of the NCCL logs at 8 GPUs was cut" in printed
    assert "No NCCL log says which algorithm ran at 4, 16 and 32 GPUs" in printed


@pytest.mark.parametrize(
    ("machine", "assumed"), [("laptop", {("ring", "ring")}), ("v100", {("unknown", "ring"), ("unknown", "tree")})]
)
def test_without_a_log_gloo_is_a_ring_and_nccl_unknown(layout, machine, assumed):
    scaling = cluster_scaling()
    scaling = scaling[scaling["experiment"] == "inference_2d"]
    table = rates_of(scaling, layout, load_machine(machine, CONFIG))
    assert set(table[["algorithm", "reading"]].itertuples(index=False, name=None)) == assumed


def test_rates_csv_has_what_the_page_needs_and_the_probe_beside(layout):
    write(layout, log=f"{N} Bytes -> Algo TREE proto SIMPLE channel{{Lo..Hi}}={{0..1}}\n{N} Bytes -> Al")
    fitted(layout, gpus=8, reading="tree", gb_per_s=21.0)
    written = write_rates(layout, "e", load_machine("v100", CONFIG))
    table = read_table(layout.rates("e"), RATES)
    pd.testing.assert_frame_equal(table, written, check_dtype=False)
    at_8 = table[table["gpus"] == 8].iloc[0]
    said = at_8[["experiment", "algorithm", "machine_gb_per_s", "probed_gb_per_s", "cut_lines"]]
    assert said.tolist() == ["e", "tree", 17, 21, 1]


def test_where_nothing_moves_rates_csv_has_a_head_alone(layout, capsys):
    results = write(layout, {})
    assert write_rates(layout, "e", load_machine("v100", CONFIG)).empty
    assert tuple(read_table(layout.rates("e"), RATES).columns) == tuple(RATES)
    with pytest.raises(SystemExit):
        command(results)
    assert "no section at 2 or more GPUs" in capsys.readouterr().err


def test_on_one_machine_every_rank_is_inside(layout, capsys):
    assert command(write(layout), "laptop") == 0
    assert "between" not in capsys.readouterr().out


def test_the_regime_of_a_run_s_messages_is_said_where_the_probe_ran(layout, capsys):
    results = write(layout, {8: 0.1}, log="")
    words = "denoiser at 8 ranks, all_reduces of an iteration: 1 of 800 MB bandwidth-bound."
    assert command(results, "laptop") == 0
    assert words not in capsys.readouterr().out
    fitted(layout, gpus=8, protocol="gloo", crossover_bytes=1000, smallest_bytes=1024, largest_bytes=1 << 30)
    assert command(results, "laptop") == 0
    assert words in capsys.readouterr().out


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (f"nRanks 16 nNodes 4\n{N} Bytes -> Algo 0 proto 2 time 1.0\n", "are of 16 ranks, the run has 8"),
        (None, "scaling.csv: no such file; make it: snakemake --forcerun decompose -- report"),
    ],
)
def test_bad_input_is_one_line(layout, capsys, log, words):
    results = write(layout, log=log)
    if log is None:
        (results / "scaling.csv").unlink()
    with pytest.raises(SystemExit):
        command(results)
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("machine", "config", "words"),
    [
        ("v10", CONFIG, "no 'v10' in config/machines/; did you mean 'v100'?"),
        ("v100", "nowhere", "nowhere: no config folder here; call this in the project's folder, or pass --config DIR"),
    ],
)
def test_a_machine_that_is_not_found(layout, capsys, machine, config, words):
    with pytest.raises(SystemExit):
        command(write(layout), machine, config)
    error = capsys.readouterr().err
    assert error.strip().endswith(words)
    assert error.count("\n") == 1
