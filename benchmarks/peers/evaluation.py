"""What an evaluation gave: a loss, further outputs, and whether they keep the limits that only an evaluation tells.

A problem without limits has a number for its objective; one with limits gives a dict, ``loss`` among its entries, and raises
:class:`mipcash.Failed` where it crashes.
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
    """What came of one configuration.

    Attributes:
        loss: None where it crashed, or was not evaluated because it is illegal.
        values: the other outputs by name; empty where it crashed.
        kept: it did not crash, and keeps all limits.
    """

    loss: float | None
    values: Mapping[str, float] = field(default_factory=dict)
    kept: bool = True

    @property
    def counted(self) -> float | None:
        """The loss where the limits are kept."""
        return self.loss if self.kept else None

    @property
    def outputs(self) -> dict[str, float] | None:
        """Everything by name; None where it crashed."""
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
