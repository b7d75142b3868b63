"""The Pareto front of a study with several objectives, one of its trials as an answer, and its hypervolume.

What may be on it is legal, whole and keeps all limits. The answer, where one is asked for, is the balanced trial: the best by the
augmented Tchebycheff function with equal weights, every objective from 0 at the best to 1 at the worst of the front.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from mipcash.errors import MipcashError
from mipcash.optimizers.goals import Goals
from mipcash.optimizers.pareto import Values, hypervolume, on_front, tchebycheff, unit_values
from mipcash.optimizers.scalarising import values_of
from mipcash.study.standing import Standing, observation
from mipcash.study.text import listed, shown
from mipcash.study.trial import Trial


@dataclass(frozen=True)
class Front:
    """See the module's description. Make one with :meth:`of`.

    Attributes:
        trials: that may be on it, n of them, by number.
        goals: m of them.
        values: of the trials, to be minimised, shape (n, m).
    """

    trials: tuple[Trial, ...]
    goals: Goals
    values: Values

    @classmethod
    def of(cls, standing: Standing) -> Front:
        """Of the trials of a study."""
        kept = sorted(standing.tells(row) for row in standing.kept)
        able = [standing.trials[k] for k in kept]
        rows, values = values_of([observation(t) for t in able], standing.goals)
        return cls(tuple(able[k] for k in rows), standing.goals, values)

    @cached_property
    def rows(self) -> list[int]:
        """Of the trials those on the front, by their first objective, best first."""
        rows = np.flatnonzero(on_front(self.values)).tolist() if len(self.values) else []
        return sorted(rows, key=lambda k: tuple(self.values[k]))

    @property
    def members(self) -> tuple[Trial, ...]:
        """The trials on the front, by their first objective, best first; of equal ones the first."""
        return tuple(self.trials[k] for k in self.rows)

    @property
    def balanced(self) -> Trial | None:
        """The answer, where one is asked for; None: nothing is on the front."""
        if not self.rows:
            return None
        front = self.values[self.rows]
        found = tchebycheff(unit_values(front, front), np.ones(front.shape[1]))
        return self.trials[self.rows[int(np.argmin(found))]]

    def hypervolume(self, reference: Any = None) -> float:
        """See :meth:`mipcash.Result.hypervolume`."""
        if not len(self.values):
            return 0.0
        if reference is None:
            return hypervolume(self.values, self.values.max(axis=0))
        signs = np.array([goal.sign for goal in self.goals.goals])
        return hypervolume(self.values, signs * np.array(_point(reference, self.goals.names)))

    def table(self) -> list[tuple[str, ...]]:
        """Rows of texts: the objectives, then the front's trials and the values of each."""
        head = ("trial", *self.goals.names, "")
        best = self.balanced
        return [head, *((str(t.number), *objectives_of(t), "balanced" if t is best else "") for t in self.members)]

    def lines(self) -> list[str]:
        """The table as text."""
        rows = self.table()
        widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]) - 1)]
        aligned = (
            "  ".join([*(f"{text:>{w}}" for text, w in zip(row[:-1], widths, strict=True)), row[-1]]) for row in rows
        )
        return [f"front of {len(rows) - 1}:", *(f"  {line.rstrip()}" for line in aligned)]


def objectives_of(trial: Trial) -> tuple[str, ...]:
    """The objectives of a trial, in their order."""
    values = (trial.outcome[name].value for name in trial.goals.names)
    return tuple("-" if value is None else f"{value:.6g}" for value in values)


def front_of(standing: Standing) -> Front:
    """The front of a study.

    Raises:
        MipcashError: it has one objective.
    """
    if not standing.goals.several:
        raise MipcashError(
            'a front is of several objectives, and this study has one; give them to it, direction=["loss", "latency_ms"]. The '
            "answer for one is result.best"
        )
    return Front.of(standing)


def _point(given: Any, names: Sequence[str]) -> list[float]:
    """A reference point in the order of the objectives.

    Raises:
        ValueError: it is none.
    """
    if isinstance(given, Mapping) and set(given) == set(names):
        given = [given[name] for name in names]
    numbers = given if isinstance(given, (Sequence, np.ndarray)) and not isinstance(given, str) else ()
    if len(numbers) != len(names) or not all(isinstance(v, Real) and np.isfinite(float(v)) for v in numbers):
        raise ValueError(
            f"the reference point has a finite number for each of {listed(names)}, by name or in their order; got {shown(given)}"
        )
    return [float(v) for v in numbers]
