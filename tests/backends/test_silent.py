"""Test that HiGHS writes nothing to the standard output of a process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MODEL = '''"""Two numerical parameters under a rule."""
import mipcash as mc

space = mc.Space("two")
x, y = space.real("x", 0.0, 1.0), space.real("y", 0.0, 1.0)
n = space.integer("n", 0, 40)
space.rule("together", 2 * x + 3 * y + 0.1 * n <= 3.0)


def objective(config):
    return config["x"] + config["y"]
'''
PROGRAM = """
import two
from mipcash.cli.main import app
print(two.space.optimum(two.x * two.n + two.y, "maximize", solver="highs").status)
run = ["run", "two.py", "--budget", "3", "--optimizer", "random", "--storage", "run.db", "-q"]
for arguments in (run, ["report", "run.db", "--model", "two.py"], ["check", "two.py"]):
    app(arguments, standalone_mode=False)
"""


def test_highs_prints_nothing_during_solves_and_commands(tmp_path: Path) -> None:
    """Use a subprocess, because HiGHS writes to file descriptor 1 directly."""
    (tmp_path / "two.py").write_text(MODEL)
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.startswith("optimal\n")
    assert all(part in done.stdout for part in ("\nreport: run.html\n", "Two numerical parameters"))
    assert "HiGHS" not in done.stdout
