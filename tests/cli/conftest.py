from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

MODEL = '''"""A bowl to try the command on."""

import time

import mipcash as mc

DEFAULTS = {"budget": 4, "optimizer": "random"}


def build(*, low: float = -1.0, slow: float = 0.0, label: str = "x", strict: bool = False, folds: int | None = None):
    space = mc.Space("bowl")
    x = space.real("x", low, 2.0)
    n = space.integer("n", 0, 5)
    space.categorical("act", [None, True, "relu"])
    space.rule("n is small", n <= (2 if strict else 4))

    def objective(config):
        time.sleep(slow)
        return {"loss": config["x"] ** 2 + config["n"], "twice": 2 * config["n"]}

    return space, objective


space, objective = build()


def report(result, label="x"):
    return f"report: {label} = {result.config['x']:.3f}"
'''


@pytest.fixture
def pictures() -> None:
    """Enable the picture of a run in a test."""


@pytest.fixture(autouse=True)
def undrawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable pictures in tests without the fixture ``pictures``, since drawing takes most of the time of a command."""
    if "pictures" not in request.fixturenames:
        monkeypatch.setattr("mipcash.report.drawing.find_spec", lambda name: None)


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Return a function that writes a model file into an empty folder, which becomes the current one."""
    monkeypatch.chdir(tmp_path)

    def writer(text: str = MODEL, name: str = "bowl.py") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return writer
