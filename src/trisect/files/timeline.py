"""From a run's traces to its timeline, for Perfetto and drawn: what the workflow's timeline rule does."""

from __future__ import annotations

from trisect.analysis.timeline import timeline
from trisect.host import write_whole
from trisect.layout import RunLayout
from trisect.record import RunRecord
from trisect.report import chrome_trace
from trisect.report import timeline as drawing
from trisect.trace import read_job


def write_timeline(run: RunLayout) -> None:
    """Write timeline.json.gz and timeline.svg of a run that stands, each whole or not at all.

    Raises:
        TrisectError: its record or traces cannot be read, or its clocks cannot be aligned.
    """
    record = RunRecord.read(run.record)
    found = timeline(read_job(run.traces, sections=record.sections))
    svg = drawing.draw(found, record.experiment, record.gpus)
    chrome_trace.write(found, run.timeline, experiment=record.experiment, ranks=record.gpus)
    write_whole(run.timeline_drawing, svg)
