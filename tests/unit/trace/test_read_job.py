"""Several files as one job: what they must agree on, and reading them side by side."""

import gzip

import pytest
from kineto import annotation, cpu_events, document, gloo, nccl

from trisect.errors import TrisectError
from trisect.trace.read_job import read_job


def rank_file(rank, world_size=2, events=None, **header):
    return document(cpu_events() if events is None else events, rank, world_size, **header)


def test_ranks_in_order_whatever_the_files(read):
    trace = read(rank_file(1), rank_file(0), names=["b.json", "a.json"])
    assert trace.sections["rank"].tolist() == [0, 0, 1, 1]
    assert [path.rsplit("/")[-1] for path in trace.readings["file"]] == ["a.json", "b.json"]
    assert trace.collectives["group_size"].unique().tolist() == [2]


def test_a_folder_holds_traces_among_other_files(tmp_path):
    (tmp_path / "rank-0.json").write_bytes(rank_file(0))
    (tmp_path / "rank-1.json.gz").write_bytes(gzip.compress(rank_file(1)))
    (tmp_path / "notes.txt").write_text("x")
    assert read_job(tmp_path).readings["rank"].tolist() == [0, 1]
    assert read_job(tmp_path / "rank-0.json").readings["rank"].tolist() == [0]


@pytest.mark.parametrize("where", [".", "nowhere"])
def test_no_trace_files(tmp_path, where):
    with pytest.raises(TrisectError, match=r"no trace files|no such file"):
        read_job(tmp_path / where)


def test_the_same_rank_twice(read):
    with pytest.raises(TrisectError, match=r"b\.json: rank 1 is also in .*a\.json"):
        read(rank_file(1), rank_file(1), names=["a.json", "b.json"])


def test_rank_from_the_file_name(read):
    texts = [rank_file(0, distributedInfo=None)] * 2
    trace = read(*texts, names=["run_rank1.json", "run_rank0.json"])
    assert trace.readings["rank"].tolist() == [0, 1]
    assert trace.collectives["group_size"].unique().tolist() == [2]  # as many as there are files
    with pytest.raises(TrisectError, match="rank 3 is also in"):
        read(*texts, names=["a_rank3.json", "b_rank3.json"])
    with pytest.raises(TrisectError, match="no rank in distributedInfo nor in the file name"):
        read(*texts, names=["a.json", "b.json"])
    assert read(texts[0], names=["a.json"]).readings["rank"].tolist() == [0]


def test_world_sizes(read):
    with pytest.raises(TrisectError, match="world size differs"):
        read(rank_file(0, 2), rank_file(1, 4))
    with pytest.raises(TrisectError, match="rank 5 in a world of 2"):
        read(rank_file(5, 2))


def test_groups_of_different_sizes_leave_the_size_open(read):
    groups = {"pg_config": [{"pg_name": "0", "pg_size": 2}, {"pg_name": "1", "pg_size": 1}]}
    trace = read(rank_file(0, distributedInfo={"backend": "gloo", "rank": 0, "world_size": 2, **groups}))
    assert trace.collectives["group_size"].unique().tolist() == [-1]


def test_size_of_a_named_group(read):
    groups = {"pg_config": [{"pg_name": "0", "pg_size": 4}, {"pg_name": "7", "pg_size": 2}]}
    info = {"backend": "nccl", "rank": 0, "world_size": 4, **groups}
    named = nccl(1, 110, 200, 50, Process_Group_Name="7", Collective_name="allreduce")
    trace = read(rank_file(0, events=[annotation("ProfilerStep#0", 0, 1000), *named], distributedInfo=info))
    assert trace.collectives["group_size"].tolist() == [2]


def test_unknown_ways_to_list_groups_and_devices(read):
    info = {"backend": "gloo", "rank": 0, "world_size": 2, "pg_config": {"0": 2}}
    trace = read(rank_file(0, distributedInfo=info, deviceProperties="none"))
    assert trace.collectives["group_size"].unique().tolist() == [2]


def test_header_of_the_wrong_type(read):
    with pytest.raises(TrisectError, match=r"rank-0\.json: byte \d+: .*Expected `int \| null`, got `str`"):
        read(rank_file("zero"))


def test_base_time_on_some_ranks_only(read):
    with pytest.raises(TrisectError, match=r"rank-1\.json: no baseTimeNanoseconds"):
        read(rank_file(0), rank_file(1, baseTimeNanoseconds=None))


def test_section_on_no_rank(read):
    with pytest.raises(TrisectError, match=r"no annotation named 'denoiser'; there are backward, forward \(.*--list"):
        read(rank_file(0), rank_file(1), sections=["forward", "denoiser"])
    with pytest.raises(TrisectError, match=r"no annotation named 'fward'; did you mean 'forward'\? \(.*--list"):
        read(rank_file(0), rank_file(1), sections=["fward"])


def test_iterations_of_another_name(read):
    with pytest.raises(
        TrisectError, match=r"no annotation named 'ProfilerStap#k' or 'ProfilerStap'; did you mean 'ProfilerStep#k'\?"
    ):
        read(rank_file(0), iteration="ProfilerStap")


def test_section_on_some_ranks_only(read):
    without = [one for one in cpu_events() if one["name"] != "forward"]
    with pytest.raises(TrisectError, match=r"rank-1\.json: section 'forward' is missing on rank 1"):
        read(rank_file(0), rank_file(1, events=without), sections=["forward", "backward"])


def test_section_in_some_iterations_of_a_rank_only(read):
    events = cpu_events()
    second = [one for one in events if one["name"] == "forward"][1]
    fewer = [one for one in events if one is not second]
    with pytest.raises(TrisectError, match="iteration 1: section 'forward' occurs 0 times on rank 1 but 1 times"):
        read(rank_file(0), rank_file(1, events=fewer), sections=["forward", "backward"])


def test_iterations_that_a_rank_lacks_are_left_to_the_pairing(read):
    fewer = [one for one in cpu_events() if one["ts"] < 2000]
    trace = read(rank_file(0), rank_file(1, events=fewer), sections=["forward"])
    assert trace.sections.groupby("rank")["iteration"].nunique().tolist() == [2, 1]


def test_collectives_before_the_first_iteration_are_left_out(read):
    events = [gloo("all_reduce", 10, 5), *cpu_events(), gloo("barrier", 5000, 10)]
    trace = read(rank_file(0, events=events), sections=["forward", "backward"])
    assert trace.collectives["iteration"].tolist() == [0, 0, 1, 1, 1]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_worker_processes_give_the_same_tables_and_errors(tmp_path, monkeypatch, method):
    monkeypatch.setattr("trisect.trace.read_job._start_method", lambda: method)
    for rank in range(3):
        (tmp_path / f"rank-{rank}.json").write_bytes(rank_file(rank, 3))
    alone = read_job(tmp_path, sections=["forward"], workers=1)
    monkeypatch.setattr("trisect.trace.read_job.WORTH_A_PROCESS", 0)
    together = read_job(tmp_path, sections=["forward"], workers=2)
    for table in ("sections", "collectives", "readings"):
        assert getattr(together, table).equals(getattr(alone, table))
    (tmp_path / "rank-1.json").write_bytes(rank_file(1, 3)[:-40])
    with pytest.raises(TrisectError, match=r"rank-1\.json: byte \d+"):
        read_job(tmp_path, workers=2)


def test_annotations_on_several_threads(read):
    events = [annotation("ProfilerStep#0", 0, 100), annotation("a", 10, 30), annotation("a", 50, 30, tid=2)]
    assert read(document(events), sections=["a"]).sections["occurrence"].tolist() == [0, 1]
