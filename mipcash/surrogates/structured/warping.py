"""Warping of losses to the scale on which the surrogate fits them best.

Notation
    y (t,) losses;   t_i = (y_i - median) / unit,   unit = median - min (the spread of the better half)
    g_c(t) = t for t <= 0,   log(1 + c t) / c for t > 0;   c >= 0 the strength, g_0(t) = t
    v (t,) = (g_c(t) - shift) / scale, with zero mean and unit standard deviation

g_c does not change the better half of the losses and compresses the worse half, smoothly at the median. Without it, a few very bad
configurations would dominate the fit. It is increasing, so minimisers and the order of bounds and improvements stay the same.

Strengths are compared by evidence: log p(y) = log p(v) + sum_i log g_c'(t_i) - t log scale + const, g_c'(t) = 1/(1 + c t).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mipcash.program.forms import Vector

STRENGTHS = (0.0, 1.0, 4.0)
TINY = 1e-12
LEAST = 1e-150
"""Smallest spread of losses that is no rounding; its square is still a number."""


@dataclass(frozen=True)
class Warp:
    """A change of scale (see the module's notation).

    Attributes:
        median, unit: of the losses; losses above ``median`` are compressed.
        strength: c.
        shift, scale: of the standardisation.
    """

    median: float
    unit: float
    strength: float
    shift: float
    scale: float

    @classmethod
    def of(cls, losses: Vector, strength: float = 0.0, turn: float | None = None) -> Warp:
        """Return the warp that standardises these losses; if all are equal, it only shifts them.

        Args:
            turn: a loss up to which nothing is compressed, if it is larger than the median, which it then replaces.
        """
        median = float(np.median(losses)) if turn is None else max(float(np.median(losses)), turn)
        low, high = float(np.min(losses)), float(np.max(losses))
        unit = median - low
        # one loss of 1e20 among losses near 1 says nothing about the digits of the others
        if unit <= max(TINY * max(abs(low), abs(median)), LEAST * max(1.0, high - median)):
            unit = high - median
            if unit <= max(TINY * max(abs(low), abs(high)), LEAST):
                return cls(median, 1.0, 0.0, 0.0, 1.0)
        bare = cls(median, unit, strength, 0.0, 1.0)
        values = bare(losses)
        scale = float(np.std(values))
        return cls(median, unit, strength, float(np.mean(values)), scale if scale > TINY else 1.0)

    def __call__(self, losses: Vector) -> Vector:
        """Return v: shape of ``losses``."""
        # differences first, so that losses near 1e300 do not overflow
        t = losses / self.unit - self.median / self.unit
        if self.strength > 0.0:
            t = np.where(t > 0.0, np.log1p(self.strength * np.maximum(t, 0.0)) / self.strength, t)
        return np.asarray((t - self.shift) / self.scale)

    def inverse(self, value: float) -> float:
        """Return the loss whose v is ``value``."""
        t = self.shift + self.scale * value
        if self.strength > 0.0 and t > 0.0:
            t = math.expm1(min(self.strength * t, 700.0)) / self.strength
        return self.median + self.unit * t

    def slope(self, losses: Vector) -> Vector:
        """Return dv/dy: shape of ``losses``."""
        t = losses / self.unit - self.median / self.unit
        return np.asarray(1.0 / (1.0 + self.strength * np.maximum(t, 0.0)) / (self.scale * self.unit))

    def log_jacobian(self, losses: Vector) -> float:
        """Return sum_i log dv_i/dy_i, up to a constant that does not depend on the strength."""
        t = losses / self.unit - self.median / self.unit
        return -float(np.sum(np.log1p(self.strength * np.maximum(t, 0.0)))) - len(losses) * math.log(self.scale)
