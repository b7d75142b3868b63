"""Notebooks, run by a kernel: progress as one HTML output that is replaced, results as tables, figures inline, a tutorial."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipykernel")
nbformat: Any = pytest.importorskip("nbformat")
nbclient: Any = pytest.importorskip("nbclient")

CELLS = (
    """
import mipcash as mc
space = mc.Space("<bowl>")
x = space.real("x", -1.0, 2.0)
calls = []
def objective(config):
    calls.append(config)
    if len(calls) == 3:
        raise mc.Failed("too <large>")
    return config["x"] ** 2
""",
    'result = mc.minimize(objective, space, 6, optimizer="random")',
    "result",
    'result.plot("convergence");',
)
TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorials" / "design.md"


def run(cells: Sequence[str], folder: Path) -> list[list[Any]]:
    """Return the outputs of each cell of a notebook that is run in a folder."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    resources = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    return [cell.outputs for cell in notebook.cells]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[list[Any]]:
    return run(CELLS, tmp_path_factory.mktemp("notebook"))


def test_a_run_shows_one_bar_which_is_replaced(outputs: list[list[Any]]) -> None:
    (shown,) = outputs[1]  # no lines on stderr beside it
    html = shown["data"]["text/html"]
    assert '<progress value="6" max="6"></progress> 6/6 · best ' in html
    assert "&lt;bowl&gt;" in html
    assert "<bowl>" not in html
    assert "1 failed" in html
    assert "too &lt;large&gt;" in html


def test_a_result_is_shown_as_html(outputs: list[list[Any]]) -> None:
    (shown,) = outputs[2]
    assert "<table" in shown["data"]["text/html"]
    assert "1 failed" in shown["data"]["text/plain"]


def test_a_picture_of_a_result_is_shown_inline(outputs: list[list[Any]]) -> None:
    pytest.importorskip("matplotlib")
    assert [out["data"]["image/png"][:5] for out in outputs[3]] == ["iVBOR"]  # base64 of a PNG file


def test_a_tutorial_runs_as_a_notebook(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    cells = re.findall(r"```python\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), re.S)
    shown = run(cells, tmp_path)
    assert any("image/png" in out.get("data", {}) for out in shown[-1])
    assert {p.name for p in tmp_path.iterdir()} >= {"beam.db", "design.svg"}
