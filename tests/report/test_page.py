"""The page of a run: there for every history, whole in itself, and harmless whatever names and messages say."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from reported import EVIL, RUNS

from mipcash.report.data.run import Run
from mipcash.report.page.document import page


class Read(HTMLParser):
    """What a browser would make of a page: tags that are open, scripts, addresses, text."""

    VOID = ("meta", "link", "input", "br", "wbr")
    SVG = ("path", "line", "circle", "rect")

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [v or "" for n, v in attrs if n in ("src", "href", "action", "data", "srcset")]
        assert not any(n.startswith("on") for n, _ in attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in self.SVG

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.mark.parametrize("name", RUNS)
def test_every_history_gives_a_page_that_needs_nothing(name: str) -> None:
    text = page(Run.of(RUNS[name]()))
    read = Read(text)
    assert read.tags.count("script") == 1
    assert read.tags.count("style") == 1
    assert read.addresses == ["data:,"]
    assert "<script>alert" not in text
    numbers = re.findall(r'(?:x|y|x1|x2|y1|y2|cx|cy|r|width|height|d)="([^"]*)"', text)
    assert not any("nan" in n or "inf" in n for n in numbers)


def test_a_name_that_is_a_script_is_shown_as_text() -> None:
    for name in ("categories", "limits", "failed"):
        assert EVIL[:25] in "".join(Read(page(Run.of(RUNS[name]()))).text)
