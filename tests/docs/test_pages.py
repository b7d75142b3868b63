"""The Python of every page runs as printed, top to bottom, in an empty folder."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
WITH_CODE = sorted(p for p in DOCS.rglob("*.md") if "```python" in p.read_text(encoding="utf-8"))
NEEDS = {"from-optuna": "optuna", "from-configspace": "ConfigSpace", "scale-out": "distributed"}


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda p: p.relative_to(DOCS).with_suffix("").as_posix())
def test_its_python_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.stem in NEEDS:
        pytest.importorskip(NEEDS[page.stem])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.delenv("MIPCASH_DATA", raising=False)  # pages run for a reader who has no folder of data
    names = {"__name__": "page"}
    for number, code in enumerate(blocks(page)):
        exec(compile(code, f"{page.name}, block {number}", "exec"), names)
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


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Every link leads somewhere, every page is in the navigation, every name of the reference exists."""
    pytest.importorskip("mkdocs")
    import subprocess
    import sys

    site = tmp_path / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)],
        cwd=DOCS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    page = (site / "reference" / "search.html").read_text(encoding="utf-8")
    assert "seconds_per_proposal" in page
    outside = re.findall(r"<(?:link|script|img)[^>]+(?:href|src)=\"(?:https?:)?//[^\"]+", page)
    assert [o for o in outside if "canonical" not in o] == [], "the site loads something from elsewhere"
    shutil.rmtree(site)
