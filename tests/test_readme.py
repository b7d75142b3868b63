"""The README's Python runs as printed (with smaller budgets), and its commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    example, _, by_hand, failures, questions, settings = blocks("python")
    code = "\n".join(
        [
            example.replace("budget=25", "budget=12"),
            by_hand,
            failures,
            "config = result.config",
            questions,
            settings.replace("budget=60", "budget=17"),
            "assert space.is_legal(result.config) and study.result.n_done == 1 and len(batch) == 3",
        ]
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {"run.db", "space.lp", "space.mps"} <= {p.name for p in tmp_path.iterdir()}


def test_the_pipelines_of_the_readme_are_searched_confirmed_and_joined(tmp_path: Path) -> None:
    given = """
import mipcash as mc
from sklearn.datasets import load_breast_cancer
from sklearn.neighbors import KNeighborsClassifier

x, y = load_breast_cancer(return_X_y=True)
x, y = x[:150], y[:150]
space = mc.Space("neighbors")
space.integer("n", 1, 30)
space.categorical("weights", ["uniform", "distance"])

def build(config):
    return KNeighborsClassifier(config["n"], weights=config["weights"])
"""
    pipelines = blocks("python")[1].replace("space, 40,", "space, 14,")
    checks = "assert space.is_legal(result.config) and result.fresh is not None and len(model.predict(x)) == 150"
    code = "\n".join([given, pipelines, checks])
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("line", [l for b in blocks("sh") for l in b.splitlines() if l.startswith("mipcash ")])
def test_the_commands_of_the_readme_exist(line: str) -> None:
    from typer.testing import CliRunner

    from mipcash.cli.main import app

    command = line.split()[1]
    assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0
    flags = [word for word in line.split("#")[0].split() if word.startswith("--")]
    plain = re.sub(r"\x1b\[[0-9;]*m", "", CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output)
    assert [f for f in flags if f not in plain] == []
