"""The report in a headless Chromium. Skipped with a reason where there is none."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fabricated
import pandas as pd
import pytest

from trisect.report import page
from trisect.report.text.note_words import in_words
from trisect.results.notes import note

ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures of the page go for people to look at: $TRISECT_SCREENSHOTS, or the test's own folder."""
    folder = Path(os.environ.get("TRISECT_SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of each kind.

    A sweep to 64 GPUs; one of a laptop, compared with an earlier one, with an oversubscribed and a missing run; a
    modelled one; one of which a single run is there; and a laptop's whole sweep, to print.
    """
    folder = tmp_path_factory.mktemp("reports")
    cluster, laptop = fabricated.cluster_scaling(), fabricated.laptop_scaling()
    killed = {("inference_3d", 2): "rank 1 was killed by signal 9; see results/inference_3d/gpus-2/logs/rank-0001.log"}
    one = laptop.query("experiment == 'inference_2d' and gpus == 1")
    not_run = {("inference_2d", n): "not run" for n in (2, 4)}
    materials = {
        "cluster": fabricated.material(cluster),
        "laptop": fabricated.laptop_material(laptop, missing=killed),
        "modelled": fabricated.material(cluster.assign(peak_memory_bytes=float("nan")), records=()),
        "partial": fabricated.laptop_material(one, missing=not_run),
    }
    more: dict[str, dict[str, Any]] = {
        "cluster": {"timelines": fabricated.timelines(cluster)},
        "laptop": {"timelines": fabricated.timelines(laptop), "comparison": fabricated.comparison()},
        "modelled": {"notice": in_words(note("modelled", machine="v100", jitter=0.02, seed=7))},
        "partial": {},
    }
    again = laptop.assign(experiment=laptop["experiment"].str.replace("2d", "3d"))
    materials["sweep"] = fabricated.laptop_material(pd.concat([laptop, again], ignore_index=True))
    more["sweep"] = {"timelines": fabricated.timelines(materials["sweep"].scaling)}
    paths = {}
    for name, material in materials.items():
        drawings = fabricated.drawings(material.scaling, material.unit, material.tables)
        paths[name] = folder / f"{name}.html"
        paths[name].write_text(page.render(material, drawings, **more[name]))
    return paths


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One Chromium for all tests, as a selenium driver; it logs every request and every console message."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install '.[browser]'")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("chromium and chromedriver are not installed: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (*ARGUMENTS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
    yield started
    started.quit()


@pytest.fixture
def look(browser: Any, reports: dict[str, Path]) -> Iterator[Any]:
    """Open a report at a width in pixels, with scripts on or off, in a page of its own."""

    def opened(name: str, width: int = 1280, *, scripts: bool = True, height: int = 900) -> Any:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})
        for kind in ("browser", "performance"):
            browser.get_log(kind)  # forget what came before
        browser.get(reports[name].as_uri())
        return browser

    yield opened
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.fixture
def requests(browser: Any) -> Callable[[], list[str]]:
    """Addresses asked for since the page was opened."""

    def listed() -> list[str]:
        events = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
        return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]

    return listed
