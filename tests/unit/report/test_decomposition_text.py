"""What `trisect decompose` prints of a decomposition: units, no exponents, who was last, within 120 columns."""

import re
from dataclasses import replace

from known import job_of, trace_of

from trisect.analysis.decomposition import decompose
from trisect.report.text.decomposition_text import decomposition_text


def cells(lines, name):
    return [re.split(r"  +", line) for line in lines if line.startswith(name)]


def test_the_rank_that_the_others_waited_for_most_often():
    lines = decomposition_text(decompose(trace_of(job_of((3, 5, 4), (4, 5, 3), (5, 4, 3), (4, 4, 4)))))
    assert lines[0].startswith("3 ranks; ")
    assert [row[-1] for row in cells(lines, "s ")] == ["0 s", "rank 1 in 2 of 3"]  # nobody waits in the fourth
    assert [row[-1] for row in cells(lines, "total")] == ["0 s", "rank 1 in 2 of 3"]


def test_one_rank_waits_for_nobody():
    lines = decomposition_text(decompose(trace_of(job_of((3,), (5,)))))
    assert lines[0].startswith("1 rank; ") and cells(lines, "s ")[1][-1] == "-"


def test_unknown_and_tiny_values_are_readable_and_lines_fit():
    name = "a section with the name of " + "x" * 200
    result = decompose(trace_of(job_of((3, 5), (4, 4), name=name)))
    table = result.table.assign(wait_late_start_s=float("nan"), wait_jitter_s=1e-17, hidden_s=-2e-12, idle_s=3e-9)
    lines = decomposition_text(replace(result, table=table))
    times, causes = cells(lines, "a section with")
    assert times[0] == causes[0] and times[0].endswith("…") and len(times[0]) == 32
    assert causes[2:4] == ["0 s", "-"] and times[4] == "0.00300 µs" and times[-1] == "0 s"
    assert max(map(len, lines)) <= 120 and not re.search(r"e-\d|nan", "".join(lines).lower())
