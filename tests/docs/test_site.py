"""The built site in a browser, opened from its folder: pages, links and search."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / "site"
NAVIGATION = re.findall(r"^ +- ((?:[\w-]+/)*[\w-]+)\.md$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.M)
SEARCH = """new Promise(async done => {
  document.getElementById("__search").click()
  const box = document.querySelector(".md-search__input")
  box.focus()
  box.value = "infeasible"
  box.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}))
  for (let k = 0; k < 600; k++) {
    const found = [...document.querySelectorAll(".md-search-result__item a")].map(a => a.href)
    if (found.length) return done(found)
    await new Promise(wait => setTimeout(wait, 100))
  }
  done([])
})"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if not (SITE / "index.html").exists():
        pytest.skip("the site is not built; `make docs` builds it")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(ROOT / "tests" / "report"), *sys.path])
        from browser import CHROMIUM, Browser
    if CHROMIUM is None:
        pytest.skip("needs chromium")
    made = Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


def test_links_of_every_page_lead_to_a_file_and_nothing_is_logged(browser: Any) -> None:
    for page in NAVIGATION:
        browser.open((SITE / f"{page.replace('README', 'index')}.html").as_uri(), 1200, 900, False)
        links = browser.value("[...document.querySelectorAll('article a[href], nav a[href]')].map(a => a.href)")
        files = {link.partition("#")[0] for link in links if link.startswith("file:")}
        assert files, f"{page} has no links"
        assert [f for f in sorted(files) if not Path(f.removeprefix("file://")).is_file()] == [], page
        assert browser.complaints() == [], page
        assert [url for url in browser.requests() if not url.startswith(("file:", "data:"))] == [], page


def test_the_search_works_from_a_folder(browser: Any) -> None:
    browser.open((SITE / "index.html").as_uri(), 1200, 900, False)
    found = browser.value(SEARCH)
    assert any("reference/errors.html" in address for address in found), found
    assert browser.complaints() == []
