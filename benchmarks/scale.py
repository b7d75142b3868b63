"""What proposals of ``hybrid``, and questions, cost where there is much: observations, binaries, layers, levels, rules.

CPU seconds of this process, and seconds on the wall where a limit is set. The first proposal after many observations fits all
hyperparameters from scratch and encodes them all; those after it start from where it ended, as in a run. Memory is the
largest of the process so far.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from importlib import import_module
from typing import Any

import mipcash as mc
from benchmarks.registry import benchmark
from benchmarks.scales import rules, shapes, sizes
from benchmarks.scales.row import Asks, Row, Sized
from benchmarks.scales.row import markdown as table

OBSERVATIONS: Sized = {"smoke": 20, "quick": 1000, "full": 1000}
FEWER: Sized = {size: min(200, n) for size, n in OBSERVATIONS.items()}
PROPOSALS: Sized = {"smoke": 2, "quick": 6, "full": 30}
HUNDRED: Sized = {"smoke": 20, "quick": 100, "full": 100}
IN_A_ROW: Sized = {"smoke": 2, "quick": 25, "full": 49}
"""Enough of them that some search for hyperparameters."""
BINARIES, LEVELS = {"smoke": 40, "quick": 200, "full": 200}, 4


def model(name: str) -> Callable[[str], mc.Space]:
    """The space of a model that comes with the package."""
    return lambda _: import_module(f"mipcash.models.{name}").space


def wide(size: str) -> mc.Space:
    """Categories of LEVELS levels, half of which may take their first one, and two numbers."""
    binaries = BINARIES[size]
    space = mc.Space(f"{binaries} binaries")
    names = [f"c{k}" for k in range(binaries // LEVELS)]
    first = [space.categorical(name, [f"level {l}" for l in range(LEVELS)])["level 0"] for name in names]
    space.real("x", 0.0, 1.0)
    space.real("y", 0.0, 1.0)
    space.rule("half of them at most", sum(first) <= len(names) // 2)
    return space


ROWS: tuple[Row, ...] = (
    Asks("vae", model("vae"), OBSERVATIONS, PROPOSALS, 2.0),
    Asks("sklearn_pipeline", model("sklearn_pipeline"), OBSERVATIONS, PROPOSALS, 2.0),
    Asks("sklearn_pipeline, early", model("sklearn_pipeline"), HUNDRED, IN_A_ROW, 0.05, 0.25),
    Asks("artificial", model("artificial"), HUNDRED, IN_A_ROW, 0.1, 0.5),
    Asks("binaries", wide, FEWER, PROPOSALS, 5.0),
    *shapes.ROWS,
    *rules.ROWS,
    *sizes.ROWS,
)


@benchmark("scale", "seconds of proposals and questions where there is much of something")
def run(size: str, progress: Callable[[str], None]) -> dict[str, Any]:
    rows = []
    for row in ROWS:
        progress(row.name)
        rows.append({**row.measured(size), "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024})
    return {"rows": rows}


def markdown(results: dict[str, Any]) -> str:
    """The table for the page of results."""
    return table(results["rows"])
