"""Warping of losses to the scale on which the surrogate fits them best.

Notation
    y (t,) losses;   t_i = (y_i - turn) / unit,   turn a quantile of y, the median or lower,   unit = turn - min
    g_c(t) = t for t <= 0,   log(1 + c t) / c for t > 0;   c >= 0 the strength, g_0(t) = t
    v (t,) = (g_c(t) - shift) / scale, with zero mean and unit standard deviation

g_c does not change the losses below the turn and compresses the others, smoothly at the turn. Without it, a few very bad
configurations would dominate the fit; a low turn serves losses that span many orders of magnitude. It is increasing, so minimisers
and the order of bounds and improvements stay the same.

Shapes are compared by evidence: log p(y) = log p(v) + sum_i log g_c'(t_i) - t log(scale unit), g_c'(t) = 1/(1 + c t).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mipcash.program.forms import Vector

SHAPES = ((0.0, 0.5), (1.0, 0.5), (4.0, 0.5), (4.0, 0.25), (4.0, 0.1))
"""Strength, and the quantile of the losses at which the compression begins."""
TINY = 1e-12
LEAST = 1e-150
"""Smallest spread of losses that is no rounding; its square is still a number."""


@dataclass(frozen=True)
class Warp:
    """A change of scale (see the module's notation).

    Attributes:
        turn, unit: of the losses; losses above ``turn`` are compressed.
        strength: c.
        shift, scale: of the standardisation.
        quantile: of the losses at which the turn lies.
    """

    turn: float
    unit: float
    strength: float
    shift: float
    scale: float
    quantile: float = 0.5

    @property
    def shape(self) -> tuple[float, float]:
        """Strength and quantile."""
        return self.strength, self.quantile

    @classmethod
    def of(cls, losses: Vector, strength: float = 0.0, quantile: float = 0.5, least: float = -math.inf) -> Warp:
        """Return the warp that standardises these losses; if all are equal, it only shifts them.

        Args:
            quantile: of the losses, where the compression begins.
            least: a loss up to which nothing is compressed.
        """
        turn = max(float(np.quantile(losses, quantile)), least)
        low, high = float(np.min(losses)), float(np.max(losses))
        unit = turn - low
        # one loss of 1e20 among losses near 1 says nothing about the digits of the others
        if unit <= max(TINY * max(abs(low), abs(turn)), LEAST * max(1.0, high - turn)):
            unit = high - turn
            if unit <= max(TINY * max(abs(low), abs(high)), LEAST):
                return cls(turn, 1.0, 0.0, 0.0, 1.0)
        bare = cls(turn, unit, strength, 0.0, 1.0)
        values = bare(losses)
        scale = float(np.std(values))
        return cls(turn, unit, strength, float(np.mean(values)), scale if scale > TINY else 1.0, quantile)

    def __call__(self, losses: Vector) -> Vector:
        """Return v: shape of ``losses``."""
        # differences first, so that losses near 1e300 do not overflow
        t = losses / self.unit - self.turn / self.unit
        if self.strength > 0.0:
            t = np.where(t > 0.0, np.log1p(self.strength * np.maximum(t, 0.0)) / self.strength, t)
        return np.asarray((t - self.shift) / self.scale)

    def inverse(self, value: float) -> float:
        """Return the loss whose v is ``value``."""
        t = self.shift + self.scale * value
        if self.strength > 0.0 and t > 0.0:
            t = math.expm1(min(self.strength * t, 700.0)) / self.strength
        return self.turn + self.unit * t

    def slope(self, losses: Vector) -> Vector:
        """Return dv/dy: shape of ``losses``."""
        t = losses / self.unit - self.turn / self.unit
        return np.asarray(1.0 / (1.0 + self.strength * np.maximum(t, 0.0)) / (self.scale * self.unit))

    def log_jacobian(self, losses: Vector) -> float:
        """Return sum_i log dv_i/dy_i."""
        t = losses / self.unit - self.turn / self.unit
        compressed = float(np.sum(np.log1p(self.strength * np.maximum(t, 0.0))))
        return -compressed - len(losses) * (math.log(self.scale) + math.log(self.unit))
