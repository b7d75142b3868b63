"""Statistics of proposals: seconds by part, gaps of their solves, the size of the program; and the best configuration as code."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mipcash.program.forms import Vector
from mipcash.report.data.run import Run
from mipcash.text import visible

PARTS = {
    "design": "initial design",
    "surrogate": "surrogate",
    "search": "search",
    "local search": "legal moves",
    "mip": "program (MIP)",
}
"""Part of an ask -> its name in pictures; the remaining time is called other."""
SIZES = {
    "parameters": "parameters",
    "discrete": "of them discrete",
    "numbers": "of them numbers",
    "rules": "rules",
    "binaries": "binary columns",
    "columns": "columns in all",
    "products": "products",
    "rows": "rows",
    "nonzeros": "nonzeros",
}


@dataclass(frozen=True)
class Solving:
    """Statistics of n trials that this study proposed.

    Attributes:
        x: (n,) evaluations from 1.
        ask, evaluation: (n,) seconds; nan if unknown.
        parts: seconds of the ask by part, summed over the run, largest first.
        gap: (n,) relative optimality gap of the proposal's solver call; nan if there was none.
        proven: numbers of solves proven optimal, and of all solves.
        solvers: number of bounds that each solver proved.
    """

    x: Vector
    ask: Vector
    evaluation: Vector
    parts: tuple[tuple[str, float], ...]
    gap: Vector
    proven: tuple[int, int]
    solvers: tuple[tuple[str, int], ...]


def solving(run: Run) -> Solving:
    """Return the statistics of a run. Gaps need the space, because a journal stores proofs in terms of it."""
    trials = [t for t in run.result.history if not t.known]
    asks = np.array([t.seconds.get("ask", math.nan) for t in trials], dtype=float)
    evaluations = np.array([math.nan if t.duration is None else t.duration for t in trials], dtype=float)
    sums: dict[str, float] = {}
    for t in trials:
        reported = {k: float(v) for k, v in t.seconds.items() if k != "ask" and np.isfinite(v)}
        for name, value in reported.items():
            called = PARTS.get(name, visible(name))
            sums[called] = sums.get(called, 0.0) + value
        rest = t.seconds.get("ask", 0.0) - sum(reported.values())
        sums["other"] = sums.get("other", 0.0) + max(0.0, rest)
    gaps = np.array([math.nan if t.proof is None else t.proof.gap for t in trials], dtype=float)
    gaps[~np.isfinite(gaps)] = math.nan
    statuses = [t.proof.status for t in trials if t.proof is not None]
    names = [t.proof.solver for t in trials if t.proof is not None and math.isfinite(t.proof.bound)]
    counted = tuple(sorted(((n, names.count(n)) for n in set(names)), key=lambda p: -p[1]))
    parts = tuple(sorted(((n, s) for n, s in sums.items() if s > 0.0), key=lambda p: -p[1]))
    x = np.array([t.number + 1.0 for t in trials])
    return Solving(x, asks, evaluations, parts, gaps, (statuses.count("optimal"), len(statuses)), counted)


def best_as_code(run: Run) -> str:
    """Return the best configuration as Python code; empty if there is none."""
    config = run.result.config
    if config is None:
        return ""
    lines = [f"    {name!r}: {_literal(value)}," for name, value in config.items()]
    return "\n".join(["config = {", *lines, "}"])


def _literal(value: object) -> str:
    """Return a value as Python writes it, on one line; if ``repr`` fails, the name of its type."""
    try:
        text = repr(value)
    except Exception:  # a category may be any object
        text = f"<{type(value).__name__}>"
    return text if text.isprintable() else ascii(value)
