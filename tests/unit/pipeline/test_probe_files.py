"""From probes' files to fits.csv, and what is wrong with files in one line."""

import pandas as pd
import pytest

from trisect.config.plan import ProbeRun
from trisect.errors import TrisectError
from trisect.pipeline.alpha_beta import write_fits
from trisect.results.layout import Layout
from trisect.results.notes import note
from trisect.results.record import ProbeRecord, RankPlace
from trisect.results.tables import ALL_REDUCE, FITS, as_table

SIZES = [1024 << k for k in range(12)]
LOG = "h:1:1 [0] NCCL INFO comm 0x5 rank 0 nRanks {ranks} nNodes 1\n" + "".join(
    f"h:1:1 [0] NCCL INFO AllReduce: {size} Bytes -> Algo RING proto SIMPLE channel{{{{Lo..Hi}}}}={{{{0..1}}}}\n"
    for size in SIZES
)


def asked(gpus, backend="gloo", algorithm="chosen"):
    return ProbeRun(
        **{"gpus": gpus, "device": "cuda", "backend": backend, "environment": {}, "collective_timeout_s": 10},
        **{"algorithm": algorithm, "smallest_bytes": 1024, "largest_bytes": SIZES[-1]},
        **{"repetitions": 10, "seconds": 20.0},
    )


@pytest.fixture(name="layout")
def _layout(tmp_path):
    return Layout(tmp_path)


def probed(layout, gpus, backend="gloo", *, log=None, sizes=SIZES, seconds=lambda size: 1e-5 + size / 1e10, **record):
    """A probe's files."""
    run = asked(gpus, backend)
    files = layout.probe(gpus, "chosen")
    files.logs.mkdir(parents=True)
    common = dict.fromkeys(ALL_REDUCE, 0) | {"gpus": gpus, "nodes": 1, "backend": backend, "algorithm": "chosen"}
    rows = [
        common | {"cadence": "separated", "payload_bytes": size, "median_s": seconds(size), "repetitions": 9}
        for size in sizes
    ]
    as_table(rows, ALL_REDUCE).to_csv(files.all_reduce, index=False)
    place = RankPlace(rank=0, local_rank=0, host="h", pid=1, device="cpu", device_uuid=None, cores=1, threads=1)
    said = {
        **{"gpus": gpus, "config": {}, "config_sha256": run.sha256(), "launcher": "local", "job_id": "1"},
        **{"backend": backend, "device": "cuda", "placement_as_intended": True, "versions": {"nccl": "2.21.5"}},
        **{"git_revision": "", "environment": {}, "hosts": {"h": 1}, "oversubscribed": False},
        **{"algorithm": "chosen", "payload_bytes": sizes, "memory_bytes": 1 << 30, "left_out": None, "warmup": 2},
        **{"chain": 16, "checked": 100, "ranks": [place] * gpus},
    }
    ProbeRecord(**said | record).write(files.record)
    if log is not None:
        files.nccl.mkdir()
        (files.nccl / "nccl-h-1.log").write_text(log.format(ranks=gpus))
    return run, files


def test_fits_of_all_counts_in_one_table(layout):
    runs = [probed(layout, gpus)[0] for gpus in (1, 2, 4)]
    assert write_fits(layout, runs) == []
    table = pd.read_csv(layout.fits)
    assert tuple(table.columns) == tuple(FITS)
    assert table["gpus"].tolist() == [2, 4]
    assert table["gb_per_s"].tolist() == pytest.approx([10, 15], rel=1e-3)  # 1 and 1.5 bytes sent per payload byte
    assert table[["ran", "protocol", "nccl_version"]].drop_duplicates().to_numpy().tolist() == [
        ["ring", "gloo", "none"]
    ]


def test_nccl_s_log_and_version_are_read(layout):
    run, _ = probed(layout, 2, "nccl", log=LOG + "h:1:1 [0] NCCL INFO AllReduce: 8 Bytes -> Algo RI")
    assert write_fits(layout, [run]) == ["2 GPUs, auto: 1 line of the NCCL log was cut, and left out"]
    (row,) = pd.read_csv(layout.fits).to_dict("records")
    assert (row["ran"], row["protocol"], row["nccl_version"]) == ("ring", "simple", "2.21.5")


def test_what_a_reader_of_the_fits_must_know_is_said(layout):
    run, _ = probed(
        layout, 2, "nccl", left_out=note("probe_memory", first_bytes=4096, memory_bytes=3000), oversubscribed=True
    )
    assert write_fits(layout, [run]) == [
        "2 GPUs, auto: left out from 4.10 kB on: memory allows for 3.00 kB",
        "2 GPUs, auto: ranks shared cores: slower for that reason alone",
        "2 GPUs, auto: no NCCL log, so that what ran is unknown",
    ]
    table = pd.read_csv(layout.fits)
    assert table["reading"].tolist() == ["ring", "tree"]
    assert table["oversubscribed"].tolist() == [True, True]


def mistake(layout, *runs):
    with pytest.raises(TrisectError) as raised:
        write_fits(layout, runs)
    assert "\n" not in str(raised.value)
    assert not layout.fits.exists()
    return str(raised.value)


def test_a_log_of_another_run(layout):
    run, files = probed(layout, 4, "nccl", log=LOG.replace("{ranks}", "16"))
    said = mistake(layout, run)
    assert f"{files.nccl}: these logs are of 16 ranks, the run has 4; they are from another run" in said


def test_a_record_of_another_count(layout):
    run, files = probed(layout, 8)
    ProbeRecord.read(files.record).model_copy(update={"gpus": 4}).write(files.record)
    assert mistake(layout, run).endswith("run.json: it is of 4 ranks, not of 8; probe this count again")


def test_a_count_that_was_never_probed(layout):
    assert mistake(layout, asked(2)).endswith("run.json: no probe record here; measure this count again")


@pytest.mark.parametrize("content", [b"", b"gpus,nodes\n1,2\n", b"\xff\xfe", b"<html>", ",".join(ALL_REDUCE).encode()])
def test_a_damaged_table(layout, content):
    run, files = probed(layout, 2)
    files.all_reduce.write_bytes(content)
    said = mistake(layout, run)
    assert said.startswith(f"{files.all_reduce}: ")
    assert said.endswith("; make it again: snakemake --forcerun all_reduce -- probe")


def test_one_size_and_one_gpu_carry_no_fit(layout):
    run, _ = probed(layout, 2, sizes=SIZES[:1])
    assert "no latency and rate could be fitted: 2 GPUs, auto, ring gloo: no fit: 1 size is too few, 3" in mistake(
        layout, run
    )
    run, _ = probed(layout, 1)
    assert mistake(layout, run).endswith("one GPU alone sends nothing: probe 2 or more")
