"""The page in a real browser: light, dark and narrow layouts, requests, log messages and live updates."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import tinyrun
from browser import CHROMIUM, Browser
from reported import EVIL, RUNS

from mipcash.report.data.run import Place, Run
from mipcash.report.page.document import page
from mipcash.report.server import Watched, dashboard

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


def pixels(path: Path) -> np.ndarray:
    image = pytest.importorskip("matplotlib.image")
    return np.asarray(image.imread(path))[:, :, :3]


@needs_browser
@pytest.mark.parametrize("name", ["limits", "many"])
def test_it_looks_right_light_and_dark_and_on_a_phone(name: str, browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "run.html"
    file.write_text(page(Run.of(RUNS[name]())), encoding="utf-8")
    for width, dark in ((1200, False), (390, True)):
        browser.open(file.as_uri(), width, 900, dark)
        assert browser.value("document.documentElement.scrollWidth") <= width
        assert browser.requests() == [file.as_uri()]
        assert browser.complaints() == []
        assert browser.value("getComputedStyle(document.querySelector('h1')).fontFamily") != ""
        shown = "[...document.querySelectorAll('svg.chart')].filter(s => s.getBoundingClientRect().width > 0)"
        cut = browser.value(f"{shown}.filter(s => s.getBoundingClientRect().right > innerWidth + 1).length")
        assert cut == 0
        small = f"{shown}.map(s => s.getBoundingClientRect().width / s.viewBox.baseVal.width)"
        assert browser.value(f"Math.min(1, ...{small})") > 0.75, "text of charts is too small to be read"
        shot = tmp_path / f"{width}{dark}.png"
        browser.picture(shot)
        seen = pixels(shot)
        ground = float(seen[5, 5].mean())
        assert ground < 0.2 if dark else ground > 0.8
        assert float((np.abs(seen - seen[5, 5]).max(axis=2) > 0.3).mean()) > 0.004, "there is hardly anything on it"


@needs_browser
def test_names_that_are_scripts_do_not_run_even_where_they_are_not_escaped(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "run.html"
    text = page(Run.of(RUNS["categories"]()))
    file.write_text(text, encoding="utf-8")
    browser.open(file.as_uri(), 1200, 900, False)
    assert browser.complaints() == []
    assert EVIL in browser.value("document.body.textContent")
    file.write_text(
        text.replace("<main>", "<main><script>alert(1)</script><img src=x onerror=alert(2)>"), encoding="utf-8"
    )
    browser.open(file.as_uri(), 1200, 900, False)
    said = [e["method"] for e in browser.complaints()]
    assert "Log.entryAdded" in said
    assert "Page.javascriptDialogOpening" not in said


@needs_browser
def test_tips_and_copying_work(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "run.html"
    file.write_text(page(Run.of(RUNS["some"]())), encoding="utf-8")
    browser.open(file.as_uri(), 1200, 900, False)
    dot = "document.querySelector('.choice-0 .wide .dot')"
    browser.value(f"{dot}.dispatchEvent(new PointerEvent('pointermove', {{bubbles: true}}))")
    assert "evaluation" in browser.value("document.getElementById('tip').textContent")
    assert browser.value("document.getElementById('tip').hidden") is False
    browser.value("document.querySelector('.copy').click()")
    copied = "new Promise(r => setTimeout(() => r(document.querySelector('.copy').textContent), 200))"
    assert browser.value(copied) == "Copied"


@needs_browser
def test_the_live_page_updates_and_keeps_its_position(browser: Browser, tmp_path: Path) -> None:
    journal = tmp_path / "run.db"
    tinyrun.started(journal, 5)
    with dashboard(Watched(journal, Place(tinyrun.space()))) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        browser.open(server.url, 390, 700, False)
        browser.value("scrollTo(0, 600); document.getElementById('convergence-by-1').click()")
        tinyrun.started(journal, 9)
        wait = "new Promise(r => setTimeout(() => r(document.querySelector('.tiles').textContent), {}))"
        for _ in range(240):
            if "9 of 9" in browser.value(wait.format(250)):
                break
        else:
            pytest.fail("no news came")
        assert browser.value("scrollY") == 600
        assert browser.value("document.getElementById('convergence-by-1').checked") is True
        assert browser.complaints() == []
        assert {u.split("?")[0].removeprefix(server.url) for u in browser.requests()} == {"", "news"}
        server.shutdown()


def luminance(color: str) -> float:
    """Return the relative luminance (WCAG 2) of a colour ``#rrggbb``."""
    parts = (int(color[k : k + 2], 16) / 255 for k in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_colours_have_enough_contrast() -> None:
    style = resources.files("mipcash.report.page").joinpath("page.css").read_text(encoding="utf-8")
    schemes = [
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", part))
        for part in style.split("@media (prefers-color-scheme: dark)")[:2]
    ]
    schemes[1] = schemes[0] | schemes[1]
    least = dict.fromkeys(("ink", "soft", "accent", "orange", "red", "green", "best", "violet"), 4.5)
    for colours in schemes:
        for name, contrast in (least | {"dot": 3.0, "inner": 3.0, "s1": 3.0}).items():
            one, other = sorted((luminance(colours[name]), luminance(colours["card"])))
            assert (other + 0.05) / (one + 0.05) >= contrast, name
