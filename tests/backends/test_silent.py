"""HiGHS writes nothing to the standard output of a process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MODEL = '''"""Two numerical parameters under a rule."""
import mipcash as mc

space = mc.Space("two")
x, y = space.real("x", 0.0, 1.0), space.real("y", 0.0, 1.0)
n = space.integer("n", 0, 40)
space.rule("together", 2 * x + 3 * y + 0.1 * n <= 3.0)


def objective(config):
    return config["x"] + config["y"]
'''
OPTIMUM = "import two; print(two.space.optimum(two.x * two.n + two.y, 'maximize', solver='highs').status)"
RUN = "run two.py --budget 8 --optimizer random --storage run.db -q"


def printed(folder: Path, *arguments: str) -> str:
    """Return everything that a Python process writes to file descriptor 1, which HiGHS writes to without Python."""
    done = subprocess.run([sys.executable, *arguments], cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "two.py").write_text(MODEL)
    return tmp_path


def test_check_prints_nothing_of_highs(folder: Path) -> None:
    text = printed(folder, "-m", "mipcash", "check", "two.py")
    assert "Two numerical parameters" in text
    assert "HiGHS" not in text


def test_report_prints_nothing_of_highs(folder: Path) -> None:
    printed(folder, "-m", "mipcash", *RUN.split())
    assert printed(folder, "-m", "mipcash", "report", "run.db", "--model", "two.py") == "report: run.html\n"


def test_optimum_prints_nothing_of_highs(folder: Path) -> None:
    assert printed(folder, "-c", OPTIMUM) == "optimal\n"
