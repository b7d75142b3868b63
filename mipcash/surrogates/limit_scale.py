"""The scale on which an output with a limit is learned: fine about the ends of the limit, coarse far from them.

Notation
    y (t,)      values of the output;   low <= y <= high the limit, either end may be infinite
    g           distance of y from the nearer end, negative inside;   unit = median |g| over the observations

    bilog(g) = sign(g) log(1 + |g| / unit)          (Eriksson and Poloczek 2021, there with unit 1)

Only the sign of g decides what is legal, and a surrogate that is to tell it must not spend itself on values that lie far
out: they may reach 1e9 where a limit stands at 1. The unit makes it invariant to the output's own unit. Toward both ends of
an interval it is mirrored at the middle, which keeps it increasing and continuous.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mipcash.program.forms import Vector


@dataclass(frozen=True)
class LimitScale:
    """An increasing function of an output.

    Attributes:
        low, high: ends of the limit, infinite where there is none; one is finite.
        unit: distance from an end at which the scale has halved, > 0.
    """

    low: float
    high: float
    unit: float

    @classmethod
    def of(cls, low: float, high: float, values: Vector) -> LimitScale:
        """With the unit of some values, (t,).

        Where these and the ends are whole numbers, as counts are, the ends are moved outward by a half: no value lies between,
        and one that is as large as it may be keeps the limit for sure. Answers (+-1, or 0 and 1) are as they are.
        """
        ends = [end for end in (low, high) if math.isfinite(end)]
        whole = all(float(end).is_integer() for end in ends) and bool((values == np.round(values)).all())
        if whole and bool((np.abs(values) > 1.0).any()):
            low, high = low - 0.5, high + 0.5
        apart = np.minimum(np.abs(values - low), np.abs(values - high))
        apart = apart[apart > 0.0]
        return cls(low, high, float(np.median(apart)) if len(apart) else 1.0)

    def __call__(self, values: Vector) -> Vector:
        """On the scale: shape of ``values``; infinite ones stay so."""
        if math.isinf(self.low):
            return self._bilog(values - self.high)
        if math.isinf(self.high):
            return self._bilog(values - self.low)
        half = 0.5 * (self.high - self.low)
        centred = values - (self.low + half)
        return np.asarray(np.sign(centred) * (self._bilog(np.abs(centred) - half) + math.log1p(half / self.unit)))

    def slope(self, values: Vector) -> Vector:
        """Its derivative: shape of ``values``, which are finite."""
        return np.asarray(1.0 / (self.unit + np.minimum(np.abs(values - self.low), np.abs(values - self.high))))

    def violation(self, values: Vector) -> Vector:
        """How far values lie outside, on the scale; 0 where the limit is kept: shape of ``values``."""
        low, high = self.ends
        on_scale = self(values)
        outside = (values < self.low) | (values > self.high)
        least = np.finfo(float).tiny  # what breaks a limit by a last digit breaks it
        return np.where(outside, np.maximum(np.maximum(low - on_scale, on_scale - high), least), 0.0)

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the limit on the scale."""
        low, high = self(np.array([self.low, self.high])).tolist()
        return low, high

    def _bilog(self, g: Vector) -> Vector:
        return np.asarray(np.sign(g) * np.log1p(np.abs(g) / self.unit))
