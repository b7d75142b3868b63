"""The scale on which an output with an outcome constraint is modelled: fine near its bounds, coarse far from them.

Notation
    y (t,)      values of the output;   low <= y <= high the outcome constraint, either bound may be infinite
    g           distance of y from the nearer bound, negative if feasible;   unit = median |g| over the observations

    b = log(1 + |g| / unit)
    bilog(g) = sign(g) b                            (Eriksson and Poloczek 2021, there with unit 1)
    scale(g) = sign(g) b for b <= FAR,   sign(g) (FAR + log(1 + b - FAR)) beyond

Only the sign of g decides feasibility. Values that violate the constraint by far (1e9, say, for a bound of 1) would dominate the
fit of a surrogate without helping it to predict that sign. One logarithm leaves 1e9 at 20 and the values near the bound within 1,
where one deviation of noise covers them all; hence the second one, smooth at FAR. The unit makes the scale invariant to the
output's own unit. For an interval the function is mirrored at the middle, which keeps it increasing and continuous.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mipcash.program.forms import Vector

FAR = 2.0
"""b beyond which values are compressed further: |g| > 6.4 units."""


@dataclass(frozen=True)
class LimitScale:
    """An increasing function of an output.

    Attributes:
        low, high: bounds of the outcome constraint; at least one is finite.
        unit: distance from a bound at which the slope of the scale has halved, > 0.
    """

    low: float
    high: float
    unit: float

    @classmethod
    def of(cls, low: float, high: float, values: Vector) -> LimitScale:
        """Return the scale whose unit is the median distance of some values, (t,), from the nearer bound.

        If the values and bounds are integers, as counts are, the bounds are moved outward by 0.5. No value lies in between, and a
        value equal to the bound is then clearly feasible. Binary values (+-1, or 0 and 1) are left as they are.
        """
        ends = [end for end in (low, high) if math.isfinite(end)]
        whole = all(float(end).is_integer() for end in ends) and bool((values == np.round(values)).all())
        if whole and bool((np.abs(values) > 1.0).any()):
            low, high = low - 0.5, high + 0.5
        apart = np.minimum(np.abs(values - low), np.abs(values - high))
        apart = apart[apart > 0.0]
        return cls(low, high, float(np.median(apart)) if len(apart) else 1.0)

    def __call__(self, values: Vector) -> Vector:
        """Return values on the scale: shape of ``values``; infinite values stay infinite."""
        if math.isinf(self.low):
            return self._compressed(values - self.high)
        if math.isinf(self.high):
            return self._compressed(values - self.low)
        half = 0.5 * (self.high - self.low)
        centred = values - (self.low + half)
        middle = self._compressed(np.array(half))
        return np.asarray(np.sign(centred) * (self._compressed(np.abs(centred) - half) + middle))

    def slope(self, values: Vector) -> Vector:
        """Return the derivative of the scale: shape of ``values``, which must be finite."""
        apart = np.minimum(np.abs(values - self.low), np.abs(values - self.high))
        return np.asarray(1.0 / (self.unit + apart) / (1.0 + np.maximum(np.log1p(apart / self.unit) - FAR, 0.0)))

    def violation(self, values: Vector) -> Vector:
        """Return the violation of each value on the scale, 0 if feasible: shape of ``values``."""
        low, high = self.ends
        on_scale = self(values)
        outside = (values < self.low) | (values > self.high)
        least = np.finfo(float).tiny  # a violation in the last digit is still > 0
        return np.where(outside, np.maximum(np.maximum(low - on_scale, on_scale - high), least), 0.0)

    @property
    def ends(self) -> tuple[float, float]:
        """The bounds of the outcome constraint on the scale."""
        low, high = self(np.array([self.low, self.high])).tolist()
        return low, high

    def _compressed(self, g: Vector) -> Vector:
        b = np.log1p(np.abs(g) / self.unit)
        return np.asarray(np.sign(g) * (np.minimum(b, FAR) + np.log1p(np.maximum(b - FAR, 0.0))))
