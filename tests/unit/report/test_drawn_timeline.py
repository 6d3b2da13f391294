"""The timeline as a file for Perfetto, and drawn."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from known import MS, job_of, trace_of

from trisect.analysis.timeline import Timeline, timeline
from trisect.report import perfetto
from trisect.report.figures import timeline_drawing as drawing

ARRIVALS = ((3, 5, 4), (4, 4, 9), (2, 8, 8), (6, 6, 6))


@pytest.fixture(scope="module", name="found")
def _found() -> Timeline:
    return timeline(trace_of(job_of(*ARRIVALS, name="gradient", offset_ns=(0, 9 * MS, -4 * MS), barrier_ns=1000)))


@pytest.fixture(scope="module", name="content")
def _content(found: Timeline) -> dict:
    return json.loads(gzip.decompress(perfetto.document(found, experiment="inference_2d", ranks=3)))


def slices(content: dict, cat: str) -> list[dict]:
    return [event for event in content["traceEvents"] if event["ph"] == "X" and event["cat"] == cat]


def test_every_event_has_what_the_format_asks_for(content: dict) -> None:
    assert {event["ph"] for event in content["traceEvents"]} == {"M", "X", "s", "t", "f"}
    for event in content["traceEvents"]:
        assert {"ph", "ts", "pid", "tid", "name"} <= set(event)
        assert event["ts"] >= 0
        assert event["ph"] != "X" or event["dur"] > 0
        assert event["ph"] not in "stf" or event["id"]
    names = {event["args"]["name"] for event in content["traceEvents"] if event["name"].endswith("_name")}
    assert names == {"iteration 4, the slowest", "iteration 6, the median", "rank 0", "rank 1", "rank 2"}
    assert content["otherData"]["experiment"] == "inference_2d"
    assert 0 <= content["otherData"]["clock_residual_s"] < 1e-6


def test_pieces_lie_within_their_section_and_after_one_another(content: dict) -> None:
    """So that a viewer nests them: by hand, iteration 4 has compute of 4, 4 and 9 ms, then 1 ms of transfer."""
    sections = {(one["pid"], one["tid"]): one for one in slices(content, "section")}
    pieces = defaultdict(list)
    for kind in ("compute", "wait", "transfer"):
        for piece in slices(content, kind):
            pieces[piece["pid"], piece["tid"]].append(piece)
    assert sections.keys() == pieces.keys() == {(pid, tid) for pid in (1, 2) for tid in (1, 2, 3)}
    for track, mine in pieces.items():
        mine.sort(key=lambda piece: piece["ts"])
        edges = np.array([(piece["ts"], piece["ts"] + piece["dur"]) for piece in mine])
        np.testing.assert_allclose(edges[1:, 0], edges[:-1, 1], atol=0.0015)
        assert edges[0, 0] >= sections[track]["ts"] - 1e-6
        assert edges[-1, 1] <= sections[track]["ts"] + sections[track]["dur"] + 1e-6
    lengths = [(piece["name"], round(piece["dur"])) for piece in pieces[1, 1]]
    assert lengths == [("compute", 4000), ("wait", 5000), ("transfer", 1000)]


def test_flows_pair_in_time_order_and_end_at_the_rank_that_all_waited_for(content: dict) -> None:
    flows = defaultdict(list)
    for event in content["traceEvents"]:
        if event["ph"] in "stf":
            flows[event["id"]].append(event)
    assert len(flows) == 2  # one collective in each of two iterations
    for flow in flows.values():
        assert [event["ph"] for event in flow] == ["s", "t", "f"]
        assert sorted(event["ts"] for event in flow) == [event["ts"] for event in flow]
        assert {event["tid"] for event in flow} == {1, 2, 3}
        exchanged = [one for kind in ("wait", "transfer") for one in slices(content, kind)]
        for event in flow:  # each end lies inside a slice of its track
            track = [one for one in exchanged if (one["pid"], one["tid"]) == (event["pid"], event["tid"])]
            assert any(one["ts"] <= event["ts"] < one["ts"] + one["dur"] for one in track)
    assert [flow[-1]["tid"] for flow in flows.values() if flow[-1]["pid"] == 1] == [
        3
    ]  # rank 2: it took 9 ms, the others 4


def test_ends_of_a_collective_agree_within_the_residual(content: dict) -> None:
    ends = defaultdict(list)
    for one in slices(content, "transfer"):
        ends[one["pid"]].append(one["ts"] + one["dur"])
    for of_iteration in ends.values():
        assert max(of_iteration) - min(of_iteration) <= 2e6 * content["otherData"]["clock_residual_s"] + 0.002


def test_a_wait_is_coloured_by_its_share_of_the_section(content: dict) -> None:
    colours = {(one["pid"], one["tid"]): (one["cname"], one["args"]) for one in slices(content, "wait")}
    colour, about = colours[1, 1]
    assert colour == "terrible"  # 5 of 10 ms
    assert about == {"collective": "all_reduce", "payload_bytes": 4096, "share_of_section": "50 %"}
    small = timeline(trace_of(job_of((100, 102), (100, 100.5))))
    waits = [event for event in perfetto.events(small) if event.get("cat") == "wait"]
    assert [event["cname"] for event in waits] == ["bad", "good"]


def test_the_same_timeline_gives_the_same_bytes(found: Timeline) -> None:
    assert perfetto.document(found) == perfetto.document(found)
    assert drawing.draw(found, "e", 3) == drawing.draw(found, "e", 3)


def test_the_drawing_shows_both_iterations_every_rank_and_the_residual(found: Timeline) -> None:
    figure = drawing.figure(found, "inference_2d", 3)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == [
        "slowest iteration (4) of inference_2d at 3: 10.0 ms",
        "median iteration (6) of inference_2d at 3: 7.00 ms",
    ]
    assert "ms since the iteration began; the ranks' clocks agree within" in figure.axes[-1].get_xlabel()
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["0", "1", "2"]
    assert [text.get_text() for text in figure.axes[0].texts] == ["gradient"]
    first = figure.axes[0].patches[0].get_path().vertices  # rank 0 computes for 4 ms
    assert (first[:, 0].min(), first[:, 0].max()) == (pytest.approx(0), pytest.approx(4))
    svg = ElementTree.fromstring(drawing.draw(found, "inference_2d", 3))
    hovers = {title.text for title in svg.iter("{http://www.w3.org/2000/svg}title")}
    assert "inference_2d, rank 0: wait 50 % of its sections" in hovers


def test_one_iteration_of_one_rank_is_drawn_once() -> None:
    figure = drawing.figure(timeline(trace_of(job_of((3,)))), "e", 1)
    assert len(figure.axes) == 1


def test_of_many_ranks_those_that_wait_least_and_most_are_drawn() -> None:
    arrivals = [5.0] * 40
    arrivals[7], arrivals[11] = 9.0, 1.0
    found = timeline(trace_of(job_of(arrivals)))
    ranks = drawing._ranks(found.pieces)
    assert {0, 7, 11, 39} <= set(ranks)
    assert len(ranks) <= drawing.MOST_RANKS


def test_pieces_too_fine_to_see_are_merged_by_what_took_most() -> None:
    rows = [(0, 0, kind, at + shift, at + end) for at in range(10) for kind, shift, end in FINE]
    pieces = pd.DataFrame(rows, columns=["place", "rank", "kind", "start_s", "end_s"])
    merged = drawing.coarse(pieces, 10.0)
    assert len(merged) < len(pieces)
    assert set(merged["kind"]) == {"compute", "wait"}
    took = (merged["end_s"] - merged["start_s"]).groupby(merged["kind"]).sum()
    assert took["compute"] == pytest.approx(7, abs=0.4)
    assert took["wait"] == pytest.approx(3, abs=0.4)


FINE = [("compute", 0, 0.7), ("wait", 0.7, 0.85), ("transfer", 0.85, 0.855), ("wait", 0.855, 1.0)]
