from pathlib import Path

import pytest

from trisect.errors import TrisectError
from trisect.results.layout import Layout, rank_of_file


def test_paths_of_a_run() -> None:
    run = Layout(Path("results")).run("inference_2d", 16)
    assert run.decomposition == Path("results/inference_2d/gpus-16/decomposition.csv")
    assert rank_of_file(run.trace(3)) == 3


@pytest.mark.parametrize(
    ("name", "rank"), [("rank-0012.json.gz", 12), ("ddp_rank3_of_8.json", 3), ("trace.json", None)]
)
def test_rank_of_file(name: str, rank: int | None) -> None:
    assert rank_of_file(Path(name)) == rank


def test_a_results_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(TrisectError, match="results: cannot write to"):
        Layout(tmp_path / "file" / "results").require_writable()
    with pytest.raises(TrisectError, match="results: cannot write to"):
        Layout(tmp_path / "file").require_writable()


def test_looking_leaves_nothing_behind(tmp_path: Path) -> None:
    Layout(tmp_path / "a" / "results").require_writable()
    assert list(tmp_path.iterdir()) == []
