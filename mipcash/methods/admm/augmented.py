"""The black-box part of the augmented Lagrangian: the scaled loss, and M outcome constraints with u and mu (liu2020, Algorithm 2).

Notation
    y (n,)      losses, in units of the loss.
    h (n, M)    (output - high) / its unit, or (low - output) / its unit without an upper end: h + u = 0 is feasible.
    w (M,)      width of a constraint, inf if it has one end; u in [0, w] (the papers: outputs from 0, u in [0, epsilon]).
    f           y + rho/2 sum_m (h_m + u_m + mu_m / rho)^2                                         ram2020, eq. 2 and 3.
    u*(h)       min(max(-h - mu / rho, 0), w), the minimiser of f over u at an h: u needs no black-box solver.
    mu'         mu + rho (h + u)                                                                   ram2020, eq. 26

An unknown output or loss counts as the worst known one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mipcash.optimizers.data import imputed
from mipcash.optimizers.optimizer import History, Limit
from mipcash.program.forms import Booleans, Vector

WORST = 0.9
"""Quantile above which values do not widen a unit: a few losses are often far from all others."""


def unit_of(values: Vector) -> float:
    """Return the range of finite values without the worst ones; 0 if there is no range yet."""
    known = values[np.isfinite(values)]
    if not len(known):
        return 0.0
    half = 0.5 * known  # a range of values near 1e308 would overflow
    spread = float(np.quantile(half, WORST) - half.min()) or float(np.ptp(half))
    return min(2.0 * spread, 1e308) if spread > 0.0 and math.isfinite(spread) else 0.0


@dataclass(frozen=True, eq=False)
class Measured:
    """Results of evaluations (see the module's notation).

    Attributes:
        y: shape (n,), unknown values at the worst known one.
        known: whether the loss and all constrained outputs are known, shape (n,).
        h: shape (n, M).
        variance: of y, as an estimate of a complete evaluation, shape (n,); empty: 0.
        whole: which evaluations were not pruned, so that they may be answers, shape (n,); empty: all.
    """

    y: Vector
    known: Booleans
    h: Vector
    variance: Vector = field(default_factory=lambda: np.zeros(0))
    whole: Booleans = field(default_factory=lambda: np.zeros(0, dtype=bool))

    @property
    def answers(self) -> Booleans:
        """Mask of the evaluations that may be the answer of a subproblem: (n,)."""
        return self.known & self.whole if len(self.whole) else self.known


@dataclass(frozen=True, eq=False)
class Limits:
    """The outcome constraints and their multipliers.

    Attributes:
        limits: M of them.
        units: of the outputs, shape (M,).
        rho: above 0.
        mu: shape (M,).
    """

    limits: Sequence[Limit]
    units: Vector
    rho: float
    mu: Vector

    @property
    def widths(self) -> Vector:
        """w, shape (M,)."""
        return np.array([limit.high - limit.low for limit in self.limits]) / self.units

    def measured(self, history: History, unit: float) -> Measured:
        """Return the results of settled observations.

        Args:
            unit: of the loss.
        """
        losses = np.array([np.nan if o.loss is None else o.loss / unit for o in history])
        known = np.isfinite(losses)
        h = np.zeros((len(history), len(self.limits)))
        for m, limit in enumerate(self.limits):
            values = outputs(history, limit.output)
            known &= np.isfinite(values)
            h[:, m] = imputed(self._outside(limit, values) / self.units[m])
        whole = np.array([not o.outcome.pruned for o in history], dtype=bool)
        variance = np.array([o.variance for o in history], dtype=float) / unit / unit
        return Measured(imputed(losses), known, h, variance, whole)

    @staticmethod
    def _outside(limit: Limit, values: Vector) -> Vector:
        """Return the distance of values beyond the constraint: above its upper end, or below its only one."""
        return values - limit.high if math.isfinite(limit.high) else limit.low - values

    def slack(self, h: Vector) -> Vector:
        """Return u*: (n, M) -> (n, M)."""
        return np.minimum(np.maximum(-h - self.mu / self.rho, 0.0), self.widths)

    def values(self, measured: Measured, u: Vector | None = None) -> Vector:
        """Return f, at given u, (M,), or at the best u of every row: (n,)."""
        slack = self.slack(measured.h) if u is None else u
        apart = measured.h + slack + self.mu / self.rho
        return np.asarray(measured.y + 0.5 * self.rho * np.sum(apart**2, axis=1))

    def multipliers(self, h: Vector, u: Vector) -> Vector:
        """Return mu' of one answer: (M,), (M,) -> (M,)."""
        return self.mu + self.rho * (h + u)


def outputs(history: History, name: str) -> Vector:
    """Return an output of observations, nan if it is not known: shape (n,)."""
    values = (o.outcome[name].value for o in history)
    return np.array([np.nan if v is None or not math.isfinite(v) else v for v in values], dtype=float)
