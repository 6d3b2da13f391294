"""Records: what is written is read back, of this version and of 0.1; what is wrong is one line."""

import json

import fabricated
import pytest

from trisect.errors import TrisectError
from trisect.results.notes import note, read_notes, to_json
from trisect.results.record import ProbeRecord, RankPlace, RunRecord


@pytest.fixture(name="path")
def _path(tmp_path):
    return tmp_path / "run.json"


def probe(**changes):
    place = RankPlace(rank=0, local_rank=0, host="h", pid=1, device="cpu", device_uuid=None, cores=1, threads=1)
    fields = {
        **{"gpus": 1, "config": {}, "config_sha256": "", "launcher": "local", "job_id": "1", "backend": "gloo"},
        **{"device": "cpu", "placement_as_intended": True, "versions": {}, "git_revision": "", "environment": {}},
        **{"hosts": {"h": 1}, "oversubscribed": False, "algorithm": "chosen", "payload_bytes": [4], "warmup": 2},
        **{"memory_bytes": 1 << 30, "left_out": None, "chain": 16, "checked": 100, "ranks": [place]},
    }
    return ProbeRecord(**fields | changes)


@pytest.mark.parametrize(
    "record",
    [fabricated.record("inference_2d", 2), probe(), probe(left_out=note("probe_time", first_bytes=8, limit_s=2.0))],
)
def test_a_record_is_read_back(record, path):
    record.write(path)
    assert type(record).read(path) == record


def test_a_run_record_of_version_0_1_is_read(path):
    record = fabricated.record("inference_2d", 2)
    old = json.loads(record.model_dump_json())
    old["profiling"]["price"] = old["profiling"].pop("overhead")
    path.write_text(json.dumps(old))
    assert RunRecord.read(path) == record


@pytest.mark.parametrize(
    ("said", "left_out"),
    [("", None), ("from 8 bytes on: no time", note("probe_as_recorded", text="from 8 bytes on: no time"))],
)
def test_a_probe_record_of_version_0_1_is_read(path, said, left_out):
    path.write_text(json.dumps(json.loads(probe().model_dump_json()) | {"left_out": said}))
    assert ProbeRecord.read(path).left_out == left_out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gpus": "two"}, "gpus: Input should be a valid integer"),
        ({"colour": "blue"}, "colour: Extra inputs are not permitted"),
    ],
)
def test_what_is_wrong_is_one_line(path, change, words):
    record = json.loads(fabricated.record("inference_2d", 2).model_dump_json())
    path.write_text(json.dumps(record | change))
    with pytest.raises(TrisectError) as stopped:
        RunRecord.read(path)
    assert str(stopped.value).startswith(f"{path}: not a run record: {words}")
    assert str(stopped.value).endswith("; measure this count again")
    assert "\n" not in str(stopped.value)


def test_no_record(path):
    with pytest.raises(TrisectError, match=r"run\.json: no run record here; measure this count again"):
        RunRecord.read(path)


def test_notes_are_read_back_and_what_is_none_is_refused(tmp_path):
    path = tmp_path / "notes.json"
    notes = [note("unattributed", share=0.25), note("late_start_uncertain", by_clock_s=float("nan"), section="s")]
    path.write_text(to_json(notes))
    assert to_json(read_notes(path)) == to_json(notes)
    for content in ("", "{}", '[{"kind": 1}]', '[{"kind": "a", "more": 1}]'):
        path.write_text(content)
        with pytest.raises(TrisectError, match=r"notes\.json: not readable as notes"):
            read_notes(path)
