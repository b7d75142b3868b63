"""Tests of the README: its Python runs (with a smaller budget), its commands exist, and it is short."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 80
    assert len(blocks(README, "python")) == 1


def test_the_readme_example_runs_and_resumes(tmp_path: Path) -> None:
    code = blocks(README, "python")[0]
    for budget in (10, 12):
        check = f"\nassert space.is_legal(result.config) and result.n_evaluations == {budget}"
        done = subprocess.run(
            [sys.executable, "-c", code.replace("budget=25", f"budget={budget}") + check],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "run.db").exists()


LINES = [
    (page.name, line)
    for page in PAGES
    for block in blocks(page.read_text(encoding="utf-8"), "sh")
    for line in block.splitlines()
    if line.startswith("mipcash ")
]


@pytest.mark.parametrize(("page", "line"), LINES, ids=lambda text: text[:40])
def test_commands_of_the_documents_exist(page: str, line: str) -> None:
    from typer.testing import CliRunner

    from mipcash.cli.main import app

    command = line.split()[1]
    if command.startswith("--"):
        assert CliRunner().invoke(app, [command]).exit_code == 0
        return
    assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0
    flags = [word for word in line.split("#")[0].split() if word.startswith("--")]
    plain = re.sub(r"\x1b\[[0-9;]*m", "", CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output)
    assert [f for f in flags if f not in plain] == []


def test_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`?make ([a-z]+)", README)):
        assert re.search(rf"^{target}:", makefile, re.M), target
