"""The Pareto front of a study with several objectives, one compromise among its trials, and its hypervolume.

Trials on the front are legal, complete and feasible. Several measurements of one configuration count by their means. The compromise
is the balanced trial. It minimises the augmented Tchebycheff function with equal weights, every objective scaled from 0 (best of
the front) to 1 (worst of the front).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from mipcash.display import aligned
from mipcash.optimizers.objectives import Objectives
from mipcash.optimizers.pareto import Values, hypervolume, on_front, tchebycheff, unit_values
from mipcash.optimizers.scalarising import values_of
from mipcash.study.feasibility import Feasibility
from mipcash.study.trial import Trial
from mipcash.text import listed, shown


@dataclass(frozen=True)
class Front:
    """Pareto front of a study; see the module's description. Make one with ``of``.

    Attributes:
        trials: candidates for the front, n of them, by number.
        objectives: the m objectives.
        values: objective values of the candidates in minimisation form, shape (n, m).
    """

    trials: tuple[Trial, ...]
    objectives: Objectives
    values: Values

    @classmethod
    def of(cls, feasibility: Feasibility) -> Front:
        """Make the front from the trials of a study."""
        kept = sorted(feasibility.kept, key=feasibility.tells)
        able = [_by_means(feasibility, feasibility.tells(row)) for row in kept]
        rows, values = values_of([row.merged for row in kept], feasibility.objectives)
        return cls(tuple(able[k] for k in rows), feasibility.objectives, values)

    @cached_property
    def rows(self) -> list[int]:
        """Indices of the candidates on the front, sorted by the first objective, best first."""
        rows = np.flatnonzero(on_front(self.values)).tolist() if len(self.values) else []
        return sorted(rows, key=lambda k: tuple(self.values[k]))

    @property
    def members(self) -> tuple[Trial, ...]:
        """Trials on the front, sorted by the first objective, best first. Of trials with equal values only the first is kept."""
        return tuple(self.trials[k] for k in self.rows)

    @property
    def balanced(self) -> Trial | None:
        """Compromise among the trials on the front; None if the front is empty."""
        if not self.rows:
            return None
        front = self.values[self.rows]
        found = tchebycheff(unit_values(front, front), np.ones(front.shape[1]))
        return self.trials[self.rows[int(np.argmin(found))]]

    def hypervolume(self, reference: Any = None) -> float:
        """Return the dominated hypervolume; see ``mipcash.Result.hypervolume``."""
        signs = np.array([objective.sign for objective in self.objectives.each])
        point = None if reference is None else signs * np.array(_point(reference, self.objectives.names))
        if not len(self.values):
            return 0.0
        return hypervolume(self.values, self.values.max(axis=0) if point is None else point)

    def table(self) -> list[tuple[str, ...]]:
        """Return table rows: a header with the objectives, then the trials of the front with their values."""
        head = ("trial", *self.objectives.names, "")
        signs, best = np.array([objective.sign for objective in self.objectives.each]), self.balanced
        found = [(self.trials[k], self.values[k] * signs + 0.0) for k in self.rows]
        return [
            head,
            *((str(t.number), *(f"{v:.6g}" for v in own), "balanced" if t is best else "") for t, own in found),
        ]

    def lines(self) -> list[str]:
        """Return the table as lines of text."""
        return [f"front of {len(self.members)}:", *aligned(self.table())]


def _by_means(feasibility: Feasibility, number: int) -> Trial:
    """Return a trial, with the means over all measurements of its configuration if these differ."""
    trial, outcome = feasibility.trials[number], feasibility.outcomes[number]
    alike = all(outcome[name].value == trial.outcome[name].value for name in outcome.outputs)
    return trial if alike else replace(trial, outcome=outcome)


def objectives_of(trial: Trial) -> tuple[str, ...]:
    """Return the objective values of a trial as text, in the order of the objectives."""
    values = (trial.outcome[name].value for name in trial.objectives.names)
    return tuple("-" if value is None else f"{value:.6g}" for value in values)


def _point(given: Any, names: Sequence[str]) -> list[float]:
    """Return a reference point in the order of the objectives.

    Raises:
        ValueError: it does not have one finite number per objective.
    """
    if isinstance(given, Mapping) and set(given) == set(names):
        given = [given[name] for name in names]
    numbers = given if isinstance(given, (Sequence, np.ndarray)) and not isinstance(given, str) else ()
    if len(numbers) != len(names) or not all(isinstance(v, Real) and np.isfinite(float(v)) for v in numbers):
        raise ValueError(
            f"the reference point has a finite number for each of {listed(names)}, by name or in their order; got {shown(given)}"
        )
    return [float(v) for v in numbers]
