"""Which annotations can be sections: how often, on how many ranks, how long, within how many others."""

import math

import pytest
from kineto import annotation, cpu_events, document, gloo, kineto_layout

from trisect.trace.annotation_list import AnnotationUse, list_annotations


@pytest.fixture(name="listed")
def _listed(tmp_path):
    """Write a list of events per rank, and list their annotations."""

    def write(*ranks, iteration="ProfilerStep", layout=lambda text: text):
        paths = [tmp_path / f"rank-{rank}.json" for rank in range(len(ranks))]
        for rank, (path, events) in enumerate(zip(paths, ranks, strict=True)):
            path.write_bytes(layout(document(events, rank, len(ranks))))
        return list_annotations(paths, iteration)

    return write


@pytest.mark.parametrize("layout", [lambda text: text, kineto_layout])
def test_sections_of_a_job(listed, layout):
    found = listed(cpu_events(), cpu_events(), layout=layout)
    assert (found.ranks, found.marker, found.iterations) == (2, "ProfilerStep#k", 2)
    assert found.mean_s == pytest.approx(900e-6)
    assert found.uses == [
        AnnotationUse("forward", 1, 2, pytest.approx(290e-6), 0),
        AnnotationUse("backward", 1, 2, pytest.approx(400e-6), 0),
    ]


def test_names_as_they_are_and_what_they_lie_within(listed):
    events = [
        annotation("Optimizer.step#SGD.step", 20, 5),  # before the first iteration
        annotation("ProfilerStep#7", 100, 100),
        annotation("## forward ##", 110, 40),
        annotation("DDP.forward", 115, 30),
        annotation("layer", 116, 10),
        annotation("layer", 130, 10),
        annotation("Optimizer.step#SGD.step", 160, 20),
        annotation("ProfilerStep#8", 200, 100),
        annotation("bucket#3", 220, 5),
        annotation("nccl:all_reduce", 230, 5),
        gloo("barrier", 240, 5),
    ]
    found = listed(events, [one for one in events if one["name"] != "layer"])
    assert [(use.name, use.count, use.ranks, use.depth) for use in found.uses] == [
        ("## forward ##", 0.5, 2, 0),
        ("DDP.forward", 0.5, 2, 1),
        ("layer", 1, 1, 2),
        ("Optimizer.step#SGD.step", 0.5, 2, 0),
    ]


def test_without_iterations_all_are_listed_with_what_might_mark_them(listed):
    found = listed([annotation("train#0", 0, 10), annotation("train#1", 10, 20), annotation("a", 12, 5)])
    assert found.marker == "" and math.isnan(found.iterations) and math.isnan(found.mean_s)
    assert [(use.name, use.count, use.depth) for use in found.uses] == [("train#k", 2, 0), ("a", 1, 1)]
    assert found.uses[0].mean_s == pytest.approx(15e-6)


def test_events_twice_or_without_a_time_do_not_count(listed):
    events = [annotation("it", 0, 100), annotation("a", 10, 10), annotation("a", 10, 10), annotation("a", 30, 10)]
    events.append({key: value for key, value in annotation("a", 50, 10).items() if key != "ts"})
    found = listed(events, iteration="it")
    assert (found.marker, [use.count for use in found.uses]) == ("it", [2])


def test_a_trace_without_annotations(listed):
    assert listed([]).uses == []
