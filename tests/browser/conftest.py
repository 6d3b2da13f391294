"""The report in a headless Chromium. Skipped with a reason where there is none."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fabricated
import pytest

from trisect.report import page

REPO = Path(__file__).parents[2]
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
    modelled one; and one of which a single run is there.
    """
    folder = tmp_path_factory.mktemp("reports")
    captions = {path.stem: path.read_text() for path in (REPO / "workflow/report").glob("*.rst")}
    sweeps = {
        "cluster": (fabricated.cluster_scaling(), fabricated.record, {}),
        "laptop": (
            fabricated.laptop_scaling(),
            fabricated.laptop_record,
            {("inference_3d", 2): "rank 1 was killed by signal 9; see results/inference_3d/gpus-2/logs/rank-0001.log"},
        ),
    }
    more: dict[str, dict[str, Any]] = {
        name: {
            "timelines": fabricated.timelines(scaling),
            "movement": fabricated.movement(scaling),
            "predictions": fabricated.predictions(scaling),
        }
        for name, (scaling, _, _) in sweeps.items()
    }
    more["laptop"]["comparison"] = fabricated.comparison()
    one = fabricated.laptop_scaling().query("experiment == 'inference_2d' and gpus == 1")
    sweeps["modelled"] = (fabricated.cluster_scaling(), fabricated.record, {})
    sweeps["partial"] = (one, fabricated.laptop_record, {("inference_2d", n): "not run" for n in (2, 4)})
    more["modelled"] = {"movement": more["cluster"]["movement"], "notice": "Modelled, not measured."}
    more["partial"] = {}
    paths = {}
    for name, (scaling, make, missing) in sweeps.items():
        records = [] if name == "modelled" else fabricated.records_for(scaling, make)
        tables = {"scaling": scaling, "ranks": fabricated.ranks(scaling)} if name == "partial" else None
        drawings = fabricated.drawings(scaling, "rank" if make is fabricated.laptop_record else "GPU", tables)
        html = page.render(scaling, records, missing, drawings, captions, **more[name])
        paths[name] = folder / f"{name}.html"
        paths[name].write_text(html)
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
