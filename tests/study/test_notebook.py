"""Progress in a notebook, run by a kernel: one HTML output that is replaced, and the representation of results."""

from __future__ import annotations

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
)


@pytest.fixture(scope="module")
def outputs() -> list[list[Any]]:
    """Return the outputs of each cell of a notebook."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    return [cell.outputs for cell in notebook.cells]


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
