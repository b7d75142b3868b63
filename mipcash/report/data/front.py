"""Several objectives against each other: the Pareto front and dominated trials."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from mipcash.errors import MipcashError
from mipcash.optimizers.objectives import Objective
from mipcash.program.forms import Booleans, Vector
from mipcash.report.data.run import Run

PAIRS = 3
"""Largest number of pairs of objectives shown."""


@dataclass(frozen=True)
class FrontPair:
    """Two of the objectives, at the n trials with known values of both.

    Attributes:
        objectives: the two objectives.
        trial: (n,) numbers.
        values: (n, 2) with the objectives' own signs.
        feasible: (n,) True if the trial is feasible.
        on: (n,) True if the trial is on the front of all objectives.
        best: index of the balanced trial; None: none.
        only: True if there are no other objectives.
    """

    objectives: tuple[Objective, Objective]
    trial: tuple[int, ...]
    values: Vector
    feasible: Booleans
    on: Booleans
    best: int | None
    only: bool

    @property
    def steps(self) -> list[tuple[float, float]]:
        """The front as a staircase sorted by the first objective, best first; empty if there are other objectives."""
        on = np.flatnonzero(self.on)
        order = on[np.argsort(self.objectives[0].sign * self.values[on, 0], kind="stable")]
        return [(float(a), float(b)) for a, b in self.values[order]] if self.only else []


def fronts(run: Run, outputs: tuple[str, str] | None = None) -> list[FrontPair]:
    """Return the first pairs of objectives, or one pair by its names, that have data; empty with one objective.

    Raises:
        MipcashError: an output is no objective.
    """
    result = run.result
    if not result.objectives.several:
        return []
    named = {objective.output: objective for objective in result.objectives.each}
    pairs = list(combinations(named.values(), 2))[:PAIRS]
    if outputs is not None:
        if len(set(outputs)) != 2 or not named.keys() >= set(outputs):
            raise MipcashError(f"objectives= names two of {', '.join(map(repr, named))}, got {outputs!r}")
        pairs = [(named[outputs[0]], named[outputs[1]])]
    feasibility, best = result.feasibility, result.best
    members = {t.number for t in result.front}
    found = []
    for pair in pairs:
        rows, values = [], []
        for t in result.history:
            reported = [feasibility.outcomes[t.number][objective.output].value for objective in pair]
            if (
                t.done
                and t.legal
                and t.at_full_fidelity
                and not t.repeat
                and all(v is not None and np.isfinite(v) for v in reported)
            ):
                rows.append(t.number)
                values.append([float(v) for v in reported if v is not None])
        if not rows:
            continue
        at = next((k for k, n in enumerate(rows) if best is not None and n == best.number), None)
        feasible = np.array([feasibility.feasible(n) is True for n in rows], dtype=bool)
        on = np.array([n in members for n in rows], dtype=bool)
        found.append(FrontPair(pair, tuple(rows), np.array(values), feasible, on, at, len(result.objectives.each) == 2))
    return found
