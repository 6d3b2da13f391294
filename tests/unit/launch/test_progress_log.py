from pathlib import Path

import pytest

from trisect.launch.progress_log import progress_log


def test_lines_go_to_whoever_watches_and_to_a_log_that_begins_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "x.log"
    log.write_text("of the launch before\n")
    say = progress_log(log)
    assert log.read_text() == ""
    say("one")
    say("two")
    assert log.read_text() == capsys.readouterr().err == "one\ntwo\n"
