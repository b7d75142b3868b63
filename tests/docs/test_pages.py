"""Python examples of the pages: each page runs as printed, from top to bottom, in an empty folder."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
WITH_CODE = sorted(p for p in DOCS.rglob("*.md") if "```python" in p.read_text(encoding="utf-8"))
NEEDS = {"from-optuna": "optuna", "from-configspace": "ConfigSpace", "scale-out": "distributed"}


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda p: p.relative_to(DOCS).with_suffix("").as_posix())
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.stem in NEEDS:
        pytest.importorskip(NEEDS[page.stem])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.delenv("MIPCASH_DATA", raising=False)  # readers have no data folder
    names = {"__name__": "page"}
    for number, code in enumerate(blocks(page)):
        exec(compile(code, f"{page.name}, block {number}", "exec", dont_inherit=True), names)
    made = {p.name for p in tmp_path.iterdir()}
    drawn = set(re.findall(r"!\[[^\]]*\]\((?:\.\./)?([\w-]+\.(?:png|svg))\)", page.read_text(encoding="utf-8")))
    assert drawn <= made, "the page shows a picture that its code does not draw"


def test_pictures_of_the_gallery_are_shown() -> None:
    shown = {
        name
        for page in WITH_CODE
        for name in re.findall(r"!\[[^\]]*\]\((?:\.\./)?([\w-]+\.(?:png|svg))\)", page.read_text(encoding="utf-8"))
    }
    assert {p.name for p in (DOCS / "gallery").glob("*.svg")} <= shown


def test_a_page_with_external_resources_fails_the_build() -> None:
    names = runpy.run_path(str(DOCS / "site_hooks.py"))
    page = '<link rel="canonical" href="https://a.example/"><script src="assets/page.js"></script>'
    assert names["on_post_page"](page) == page
    for outside in ("https://b.example/x.js", "//b.example/x.js"):
        with pytest.raises(ValueError, match=r"loads //b.example/x.js|loads https://b.example/x.js"):
            names["on_post_page"](f'{page}<script src="{outside}"></script>')
