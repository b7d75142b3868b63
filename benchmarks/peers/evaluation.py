"""Result of an evaluation: a loss, further outputs, and the feasibility under outcome constraints.

The objective of a problem without constraints returns a number. With constraints it returns a dict with a ``loss``, and
raises :class:`mipcash.Failed` on a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mipcash as mc
from mipcash.optimizers.optimizer import Limit

LOSS = "loss"
Objective = Callable[[Mapping[str, Any]], float | Mapping[str, float]]


@dataclass(frozen=True)
class Evaluation:
    """Result of the evaluation of one configuration.

    Attributes:
        loss: None after a crash, or if the configuration is illegal and was not evaluated.
        values: the other outputs by name; empty after a crash.
        kept: True if it did not crash and is feasible.
    """

    loss: float | None
    values: Mapping[str, float] = field(default_factory=dict)
    kept: bool = True

    @property
    def counted(self) -> float | None:
        """Return the loss of a feasible evaluation, else None."""
        return self.loss if self.kept else None

    @property
    def outputs(self) -> dict[str, float] | None:
        """Return all outputs by name, or None after a crash."""
        return None if self.loss is None else {LOSS: self.loss, **self.values}


def evaluate(objective: Objective, limits: Sequence[Limit], config: Mapping[str, Any]) -> Evaluation:
    """Evaluate a configuration."""
    try:
        told = objective(config)
    except mc.Failed:
        return Evaluation(None, {}, False)
    if not isinstance(told, Mapping):
        return Evaluation(float(told))
    values = {name: float(v) for name, v in told.items() if name != LOSS}
    return Evaluation(float(told[LOSS]), values, not any(l.violation(values.get(l.output)) for l in limits))
