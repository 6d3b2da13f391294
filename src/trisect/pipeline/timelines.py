"""The rule `timeline`: a run's traces to its timeline, for Perfetto and drawn."""

from trisect.analysis.timeline import timeline
from trisect.host import write_whole
from trisect.report import perfetto
from trisect.report.figures import timeline_drawing as drawing
from trisect.results.layout import RunLayout
from trisect.results.record import RunRecord
from trisect.trace.read_job import read_job


def write_timeline(run: RunLayout) -> None:
    """Write timeline.json.gz and timeline.svg of a finished run, each whole or not at all.

    Raises:
        TrisectError: its record or traces cannot be read, or its clocks cannot be aligned.
    """
    record = RunRecord.read(run.record)
    found = timeline(read_job(run.traces, sections=record.sections))
    svg = drawing.draw(found, record.experiment, record.gpus)
    write_whole(run.timeline, perfetto.document(found, experiment=record.experiment, ranks=record.gpus))
    write_whole(run.timeline_drawing, svg)
