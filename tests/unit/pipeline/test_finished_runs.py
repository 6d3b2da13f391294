"""What the report is made of: finished runs, and why the others are not; results of an older version end in a line."""

import fabricated
import pytest
from modelled import ALL_REDUCE_COST, CONFIG, WORK, write_runs

from trisect.config.loading import load
from trisect.errors import TrisectError, shown
from trisect.model.predict import Model, outline
from trisect.pipeline.finished_runs import finished_runs
from trisect.report.text.note_words import in_words
from trisect.results.layout import Layout
from trisect.results.record import RunRecord

SWEEP = load({"experiments": ["inference_2d"], "gpus": [1, 2, 4, 8]}, CONFIG)


@pytest.fixture(name="layout")
def _layout(tmp_path):
    """Runs at 1 and 2; none at 4 and 8."""
    layout = Layout(tmp_path / "results")
    problem = outline("inference_2d", SWEEP.experiments["inference_2d"], SWEEP.settings.size)
    problem.sections.update(WORK)
    write_runs(Model(problem, ALL_REDUCE_COST, dict.fromkeys(WORK, 0.02)), layout, [1, 2])
    for gpus in (1, 2):
        fabricated.record("inference_2d", gpus).write(layout.run("inference_2d", gpus).record)
    return layout


def test_finished_runs_and_why_the_others_are_not(layout):
    log = layout.run("inference_2d", 8).logs / "benchmark.log"
    log.parent.mkdir(parents=True)
    with pytest.raises(SystemExit), shown(log):
        raise TrisectError("rank 3 ran out of memory")
    found = finished_runs(SWEEP, layout)
    assert list(found.scaling["gpus"].unique()) == [1, 2]
    assert [record.gpus for record in found.records] == [1, 2]
    assert [one.kind for one in found.notes["inference_2d", 2]] == ["clocks_aligned"]
    assert found.missing == {
        ("inference_2d", 4): "not run, or ended from outside",
        ("inference_2d", 8): "rank 3 ran out of memory",
    }


AGAIN = "snakemake --forcerun decompose -- report"


def test_a_run_that_version_0_1_decomposed_is_missing_with_the_command(layout):
    layout.run("inference_2d", 2).notes.unlink()  # it wrote none
    missing = finished_runs(SWEEP, layout).missing["inference_2d", 2]
    assert missing == f"another version of trisect decomposed it; decompose it again: {AGAIN}"


def test_a_run_of_another_precision_is_not_compared_without_a_word(layout):
    path = layout.run("inference_2d", 2).record
    RunRecord.read(path).model_copy(update={"precision": "amp"}).write(path)
    said = in_words(finished_runs(SWEEP, layout).notes["inference_2d", 2][0], "GPU")
    assert said == "2 GPUs ran with precision amp, unlike the smallest count, 1: their times do not compare."


def test_a_table_of_version_0_1_is_one_line_with_the_command(layout):
    path = layout.run("inference_2d", 2).decomposition
    path.write_text(path.read_text().replace("idle_s", "gap_s"))
    with pytest.raises(TrisectError) as stopped:
        finished_runs(SWEEP, layout)
    again = f"another version of trisect wrote it; make it again: {AGAIN}"
    assert str(stopped.value) == f"{path}: no column 'idle_s': {again}"


def test_no_run_at_all(tmp_path):
    with pytest.raises(TrisectError, match="no run of the sweep is finished"):
        finished_runs(SWEEP, Layout(tmp_path))
