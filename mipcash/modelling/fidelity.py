"""The fidelity of a space: a parameter that sets how exactly an evaluation measures a configuration, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fidelity:
    """A fidelity parameter; see ``mipcash.Space.fidelity``.

    Attributes:
        label: name of the parameter.
        full: its highest value, at which answers are given.
        power: an evaluation at s costs (s / full) ** power evaluations at full fidelity.
    """

    label: str
    full: float
    power: float = 1.0

    def cost(self, config: Mapping[str, Any]) -> float:
        """Return the cost of an evaluation of a configuration, in evaluations at full fidelity; 1 for one without the parameter."""
        return math.pow(float(config.get(self.label, self.full)) / self.full, self.power)
