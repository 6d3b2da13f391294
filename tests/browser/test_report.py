"""What a reader does with the report: opens it, narrows it, sorts, switches, copies, prints."""

from __future__ import annotations

import base64
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trisect.report.catalogue import CATALOGUE

CSS, ENTER, SPACE = "css selector", "\ue007", "\ue00d"  # WebDriver's names of a selector and of two keys
Look = Callable[..., Any]
WIDTHS = (1280, 768, 375)
THINNED = """
    document.querySelectorAll("details").forEach((part) => { part.open = true; });
    const thin = (within, what, some) => document.querySelectorAll(within).forEach(
      (one) => [...one.querySelectorAll(what)].slice(some).forEach((part) => part.remove()));
    thin(".plot svg", "path, use, rect", 30);
    thin("tbody", "tr", 6);
    thin("#runs", ".run", 2);"""
"""Everything unfolded, and of what a page has alike by the thousand only the first: axe-core takes minutes over all."""
A4 = {"paperWidth": 8.27, "paperHeight": 11.69}
KINDS = ("cluster", "laptop", "modelled", "partial")


@pytest.mark.parametrize("name", KINDS)
def test_opens_quickly_and_small_without_error_or_request(
    look: Look, requests: Callable[[], list[str]], reports: dict[str, Path], name: str
) -> None:
    assert reports[name].stat().st_size < 5_000_000
    browser = look(name)
    load_ms = browser.execute_async_script("""
        const done = arguments[0];
        const ended = () => {  // the event is over a moment after the driver goes on
          const {loadEventEnd} = performance.getEntriesByType("navigation")[0];
          loadEventEnd ? done(loadEventEnd) : setTimeout(ended);
        };
        ended();""")
    assert 0 < load_ms < 2000
    assert [entry["message"] for entry in browser.get_log("browser")] == []
    assert [url for url in requests() if not url.startswith("data:")] == [reports[name].as_uri()]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", KINDS)
def test_fits_the_width_and_is_photographed(look: Look, screenshots: Path, name: str, width: int) -> None:
    """Nothing sticks out of the page: wide figures and tables scroll within themselves."""
    browser = look(name, width)
    sticking_out = browser.execute_script("return document.documentElement.scrollWidth - innerWidth")
    whole = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
    (screenshots / f"{name}-{width}.png").write_bytes(base64.b64decode(whole["data"]))
    assert sticking_out <= 0


@pytest.mark.parametrize("name", KINDS)
def test_the_answer_is_there_before_the_first_scroll(look: Look, name: str) -> None:
    """At 1280 x 800 notice, legend and the first table are seen whole, in this order; on a phone its first row is."""
    script = """return arguments[0].map((one) => {
        const box = document.querySelector(one)?.getBoundingClientRect();
        return box ? [box.top, box.bottom] : [0, 0];
    })"""
    parts = [".notice", ".key", "table.answer"]
    edges = [edge for box in look(name, 1280, height=800).execute_script(script, parts) for edge in box]
    assert edges == sorted(edges)
    assert edges[-1] <= 800
    ((_, bottom),) = look(name, 375, height=812).execute_script(script, ["table.answer tbody tr"])
    assert 0 < bottom <= 812


@pytest.mark.parametrize("width", WIDTHS)
def test_a_row_of_the_answer_leads_to_its_finding(look: Look, width: int) -> None:
    browser = look("cluster", width)
    browser.execute_script("arguments[0].click()", browser.find_elements(CSS, "table.answer tbody a")[2])
    time.sleep(0.1)
    top = browser.execute_script("return document.getElementById('finding-training_2d').getBoundingClientRect().top")
    assert 0 <= top < 100


def test_text_is_readable_on_a_phone(look: Look) -> None:
    """No text on a 375-pixel screen is smaller than 9 pixels, figures included; body text has 15 at least."""
    browser = look("cluster", 375)
    smallest = browser.execute_script("""
        return Math.min(...[...document.querySelectorAll(".plot svg text")].map((text) => {
          const {a, b} = text.getScreenCTM();
          return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b);
        }))""")
    body = browser.execute_script("return parseFloat(getComputedStyle(document.querySelector('p')).fontSize)")
    assert smallest >= 9
    assert body >= 15


def test_labels_of_a_figure_do_not_overlap_or_stick_out(look: Look) -> None:
    browser = look("cluster")
    clashes = browser.execute_script("""
        const clashes = [];
        for (const svg of document.querySelectorAll(".plot svg")) {
          const frame = svg.getBoundingClientRect();
          const texts = [...svg.querySelectorAll("text")]
            .map((text) => [text.textContent, text.getBoundingClientRect()]);
          texts.forEach(([name, box], i) => {
            if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1)
              clashes.push(`${name} sticks out`);
            for (const [other, that] of texts.slice(i + 1))
              if (Math.min(box.right, that.right) - Math.max(box.left, that.left) > 1
                  && Math.min(box.bottom, that.bottom) - Math.max(box.top, that.top) > 3)
                clashes.push(`${name} / ${other}`);
          });
        }
        return clashes;""")
    assert clashes == []


def test_a_heading_sorts_by_value(look: Look) -> None:
    browser = look("cluster")
    browser.execute_script("document.querySelector('#tables details').open = true")
    table = browser.find_element(CSS, "#tables table.sortable")
    heading = table.find_elements(CSS, "thead th")[3]

    def column() -> list[float]:
        script = "return [...arguments[0].tBodies[0].rows].map((row) => row.cells[3].dataset.value)"
        return [float(value) for value in browser.execute_script(script, table)]

    unsorted = column()
    heading.find_element(CSS, "button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert column() == sorted(unsorted) != unsorted
    heading.find_element(CSS, "button").send_keys(ENTER)  # the keyboard does it too
    assert heading.get_attribute("aria-sort") == "descending"
    assert column() == sorted(unsorted, reverse=True)


def test_an_experiment_is_switched_off_and_on(look: Look) -> None:
    browser = look("laptop")

    def shown(selector: str) -> list[bool]:
        script = """return [...document.querySelectorAll(arguments[0])].map((part) =>
            getComputedStyle(part).display !== "none" && getComputedStyle(part).visibility !== "hidden")"""
        return browser.execute_script(script, selector)

    def every(experiment: str) -> list[bool]:
        return shown(f"[data-experiment={experiment}]")

    box = browser.find_element(CSS, "input[value=inference_2d]")
    box.click()
    assert len(every("inference_2d")) > 100
    assert not any(every("inference_2d"))
    assert all(every("training_2d"))
    box.send_keys(SPACE)
    assert all(every("inference_2d"))
    browser.find_element(CSS, "input[value=forward]").click()
    assert not any(shown("[data-section=forward]"))
    assert all(shown("[data-section=backward], [data-section=total], tr.total"))


def test_values_show_on_hover(look: Look) -> None:
    """The mark under the pointer belongs to a group whose title names its run, section and value."""
    browser = look("laptop")
    title = browser.execute_script("""
        const use = document.querySelector("#figure-efficiencies g[data-section=gradient] > title ~ g use");
        use.scrollIntoView({block: "center", behavior: "instant"});
        const box = use.getBoundingClientRect();
        const hit = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
        return hit.closest("[data-section]").querySelector("title").textContent;""")
    assert title.startswith("inference_2d, ")
    assert "parallel efficiency 100 %" in title


def test_a_table_is_copied_as_csv(look: Look) -> None:
    browser = look("laptop")
    browser.execute_script("""
        document.querySelector("#tables details").open = true;
        window.copied = "";
        Object.defineProperty(navigator, "clipboard", {value: {writeText: async (text) => { window.copied = text; }}});
        document.querySelector("#tables button.copy").click();""")
    lines = browser.execute_script("return window.copied").splitlines()
    assert lines[0].startswith("ranks,section,span,speedup of ideal,compute,transfer,wait,")
    assert [round(float(value), 6) for value in lines[1].split(",")[2:8]] == [0.08, 1, 0.08, 0, 0, 1]
    assert len(lines) == 1 + 9


def test_a_link_to_a_run_opens_it(look: Look) -> None:
    browser = look("laptop")
    link = browser.find_element(CSS, "a[href='#run-training_2d-2']")
    browser.execute_script("arguments[0].click()", link)
    time.sleep(0.1)
    assert browser.execute_script("return document.getElementById('run-training_2d-2').open")


def test_with_scripts_off_everything_is_still_there(look: Look, screenshots: Path) -> None:
    browser = look("laptop", scripts=False)
    whole = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
    (screenshots / "laptop-no-scripts.png").write_bytes(base64.b64decode(whole["data"]))
    nodes = browser.execute_cdp_cmd("DOM.getDocument", {"depth": 0})["root"]["nodeId"]
    html = browser.execute_cdp_cmd("DOM.getOuterHTML", {"nodeId": nodes})["outerHTML"]
    # All figures but one without a rate; a timeline and a reconstruction per experiment.
    assert html.count('class="plot"') == len(CATALOGUE) - 1 + 2 + 2
    assert "Copy as CSV" not in html.split("<script>")[0]  # no control that would do nothing
    assert '<form class="switches" hidden' in html


@pytest.fixture
def printed(look: Look, screenshots: Path) -> Callable[..., list[str]]:
    """The text of each sheet of a report on A4 paper, with all folded parts opened or as they are."""
    if not shutil.which("pdftotext"):
        pytest.skip("pdftotext is not installed: apt-get install poppler-utils")

    def sheets(name: str, *, unfolded: bool = False) -> list[str]:
        browser = look(name)
        if unfolded:
            browser.execute_script("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        pdf = screenshots / f"{name}{'-unfolded' if unfolded else ''}.pdf"
        pdf.write_bytes(base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", A4)["data"]))
        done = subprocess.run(["pdftotext", "-layout", pdf, "-"], capture_output=True, text=True, check=True)
        return [" ".join(sheet.split()) for sheet in done.stdout.removesuffix("\f").split("\f")]

    return sheets


@pytest.mark.parametrize(("name", "limit"), [("sweep", 20), ("cluster", 25)])
def test_prints_on_few_sheets_without_cutting_a_figure(
    printed: Callable[..., list[str]], name: str, limit: int
) -> None:
    """Every figure's title is on the sheet of its caption, and what is folded on screen is left out."""
    sheets = printed(name)
    assert 5 < len(sheets) < limit
    unit = "rank" if name == "sweep" else "GPU"
    for entry in (CATALOGUE[figure].worded(unit) for figure in ("speedup", "cost", "efficiencies", "times")):
        caption = " ".join(entry.caption.split())
        assert any(caption in sheet and entry.title in sheet for sheet in sheets), entry.title
    whole = " ".join(sheets)
    assert "29.3 of 64" in whole or name == "sweep"
    assert "wait_late_start_s" not in whole
    assert "How to read it" not in whole


def test_what_is_unfolded_is_printed(printed: Callable[..., list[str]]) -> None:
    whole = " ".join(printed("laptop", unfolded=True))
    assert "wait_late_start_s" in whole  # the table of all columns
    assert "equal on all ranks" in whole  # what a run ran on


@pytest.mark.parametrize("width", [1280, 375])
@pytest.mark.parametrize("name", KINDS)
def test_passes_the_accessibility_check(look: Look, name: str, width: int) -> None:
    """axe-core finds nothing against WCAG 2 A and AA, contrast included, on a page THINNED."""
    axe = pytest.importorskip("axe_core_python.selenium", reason="axe-core-python is not installed")
    browser = look(name, width)
    browser.execute_script(THINNED)
    browser.set_script_timeout(120)
    options = {"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]}
    found = axe.Axe().run(browser, options=options)
    problems = {rule["id"]: [node["html"][:200] for node in rule["nodes"]][:3] for rule in found["violations"]}
    assert problems == {}
    assert len(found["passes"]) > 15
