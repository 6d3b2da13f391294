"""How entry points show an error, and what they keep of it for the report."""

from pathlib import Path

import pytest

from trisect.errors import TrisectError, kept_error, require_extra, shown


def test_an_error_is_a_line_exit_code_2_and_kept_beside_the_log(tmp_path: Path, capsys) -> None:
    log = tmp_path / "rule.log"
    log.write_text("trisect: a line that only looks like one\n")
    assert kept_error(log) is None
    with pytest.raises(SystemExit) as stopped, shown(log):
        raise TrisectError("gpus: 6 is wrong\n  log of rank 1: there")
    assert stopped.value.code == 2
    line = "trisect: gpus: 6 is wrong\n  log of rank 1: there\n"
    assert capsys.readouterr().err == line
    assert log.read_text().endswith(line)
    assert kept_error(log) == "gpus: 6 is wrong"


def test_what_an_earlier_try_kept_goes_when_the_next_one_begins(tmp_path: Path) -> None:
    log = tmp_path / "rule.log"
    with pytest.raises(SystemExit), shown(log):
        raise TrisectError("wrong")
    with shown(log):
        assert kept_error(log) is None
    assert kept_error(log) is None


def test_a_bug_is_not_taken_for_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), shown(tmp_path / "rule.log"):
        _ = 1 / 0
    assert kept_error(tmp_path / "rule.log") is None


def test_a_missing_extra_is_named() -> None:
    require_extra("sweep", "json", "pathlib")
    with pytest.raises(TrisectError, match=r"^nowhere is not installed; .*: pip install 'trisect\[sweep\]'$"):
        require_extra("sweep", "json", "nowhere")
