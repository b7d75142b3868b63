"""Outputs against the loss: feasible and infeasible configurations, and the trade-off for each bound."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from mipcash.optimizers.objectives import MINIMISED, Objectives
from mipcash.optimizers.optimizer import Limit
from mipcash.program.forms import Booleans, Vector
from mipcash.report.data.run import Run

OUTPUTS = 6
"""Largest number of outputs shown, constrained ones first."""


@dataclass(frozen=True)
class OutputScatter:
    """One output, at the n configurations where it and the loss are known.

    Attributes:
        output: its name.
        limit: its outcome constraint; None: it has none.
        constrained: True if the run has outcome constraints, on this output or others.
        trial: (n,) numbers.
        value, loss: (n,).
        feasible: (n,) True if the configuration is feasible.
        best: index of the best configuration; None: none.
        fronts: per end of the constraint, pairs of a bound and the best feasible loss under it.
        text: per end, a sentence on its violations and whether it binds.
        objectives: the objectives.
    """

    output: str
    limit: Limit | None
    constrained: bool
    trial: tuple[int, ...]
    value: Vector
    loss: Vector
    feasible: Booleans
    best: int | None
    fronts: tuple[tuple[tuple[float, float], ...], ...]
    text: tuple[str, ...]
    objectives: Objectives = MINIMISED


def limits(run: Run) -> list[OutputScatter]:
    """Return the data of the numerical outputs, constrained ones first."""
    result = run.result
    feasibility = result.feasibility
    limited = {limit.output: limit for limit in result.under}
    reported = Counter(name for t in result.history if t.done for name in t.values if name not in limited)
    reported.pop(result.objectives.word, None)  # the loss itself, under several objectives
    found = []
    for output in [*limited, *reported][: max(OUTPUTS, len(limited))]:
        rows = []
        for t in run.evaluated:
            outcome = feasibility.outcomes[t.number]
            value = outcome[output].value
            if value is None or not np.isfinite(value):
                continue
            rows.append((t.number, value, t.loss, feasibility.feasible(t.number) is True))
        trades = [t for t in result.limits.trade_offs if t.limit.output == output]
        if not rows and not trades:
            continue
        best = next((k for k, r in enumerate(rows) if result.best is not None and r[0] == result.best.number), None)
        found.append(
            OutputScatter(
                output,
                limited.get(output),
                bool(result.under),
                tuple(r[0] for r in rows),
                np.array([r[1] for r in rows], dtype=float),
                np.array([r[2] for r in rows], dtype=float),
                np.array([r[3] for r in rows], dtype=bool),
                best,
                tuple(tuple((s.bound, s.loss) for s in t.steps) for t in trades),
                tuple(f"{t.name}: {t.text()}" for t in trades),
                result.objectives,
            )
        )
    return found
