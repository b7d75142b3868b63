"""Page of a run: available for every history, self-contained, and safe against scripts in names and messages."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from reported import EVIL, RUNS

from mipcash.errors import MipcashError, SolverError
from mipcash.report.data.run import Run
from mipcash.report.page.document import page
from mipcash.report.page.writing import write_page


class Read(HTMLParser):
    """Parser that collects tags, addresses and text of a page, and checks that its tags are closed."""

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


@pytest.mark.parametrize("name", sorted(RUNS.keys() - {"two", "equal", "never told", "no limit kept"}))
def test_every_history_gives_a_self_contained_page(name: str) -> None:
    text = page(Run.of(RUNS[name]()))
    read = Read(text)
    assert read.tags.count("script") == 1
    assert read.tags.count("style") == 1
    assert read.addresses == ["data:,"]
    assert "<script>alert" not in text
    if name in ("categories", "limits", "failed", "several"):
        assert EVIL in "".join(read.text)
    if name == "maximised":
        assert "best value" in "".join(read.text)
        assert "Limits against the value" in "".join(read.text)
    if name == "several":
        assert "Pareto front" in "".join(read.text)
        front = len(RUNS[name]().front)
        assert text.count('class="member" cx="') == 2 * front + 1  # once wide, once narrow, and once in the legend
    assert "best loss" not in text or name not in ("maximised", "several")
    numbers = re.findall(r'(?:x|y|x1|x2|y1|y2|cx|cy|r|width|height|d)="([^"]*)"', text)
    assert not any("nan" in n or "inf" in n for n in numbers)


def test_write_page_writes_the_file_or_names_the_error(tmp_path: Path) -> None:
    result = RUNS["one"]()
    assert write_page(result, tmp_path / "run.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    for path, message in (
        (tmp_path / "run.txt", "its name must end in .html"),
        (tmp_path / "no" / "run.html", "cannot be written: .*No such file"),
        (None, "None is no path of a page"),
    ):
        with pytest.raises(MipcashError, match=message):
            write_page(result, path)  # type: ignore[arg-type]


def test_notebook_output_escapes_names() -> None:
    for name in ("categories", "limits"):
        result = RUNS[name]()
        assert result.declared is not None
        for shown in (result, result.best, result.declared, result.limits):
            text = shown._repr_html_()  # type: ignore[union-attr]
            read = Read(text)
            assert "script" not in read.tags
            assert "color" not in text.lower().replace("colour", "")  # colours come from the notebook's theme
        assert EVIL in "".join(Read(result._repr_html_()).text)


def test_a_failing_section_leaves_the_rest_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def gives_up(*_: object) -> None:
        raise SolverError("no answer in time")

    monkeypatch.setattr("mipcash.report.page.document.effects", gives_up)
    monkeypatch.setattr("mipcash.report.page.document.solving", gives_up)
    text = "".join(Read(page(Run.of(RUNS["some"]()))).text)
    assert text.count("It could not be computed: no answer in time") == 2
    assert "Parallel coordinates" in text
