"""Expected improvement of the augmented Lagrangian with optimal slacks (Gramacy et al. 2016; Picheny et al. 2016).

Notation:
    f                  the loss.
    c_j <= 0           outcome constraints, j = 1..m, one for each finite bound, on the posteriors' scales.
    lambda (m,) >= 0   multipliers.
    rho > 0            penalty.

Definitions:

    L(x) = f + sum_j min_{s >= 0} [lambda_j (c_j + s) + (c_j + s)^2 / (2 rho)] = f + sum_j psi_j(c_j).
    psi_j(c) = (max(0, lambda_j rho + c)^2 - (lambda_j rho)^2) / (2 rho).

The slack of every outcome of c_j is the optimal one, s = max(0, -lambda_j rho - c_j), as in the method of multipliers.
Picheny et al. fix it at the mean of c_j, which leaves a one-dimensional integral. Here the loss is integrated in closed
form. The constraints are averaged over K normal draws z_k, which are the same at every point and in every proposal:

    EI = (1/K) sum_k sd h((L* - mu - sum_j psi_j(c_jk)) / sd),   c_jk = mu_j + sd_j z_k

The function h is that of :mod:`mipcash.acquisition.analytic`, in logarithms as in :mod:`mipcash.acquisition.catalogue`.
L* is the least L of the observations, by posterior means. After each observation the multipliers and the penalty change
(Gramacy et al. 2016, Section 2.1), with x the observation of the least L so far:

    lambda_j <- max(0, lambda_j + c_j(x) / rho),   rho <- rho / 2 if x is infeasible

The scales change with the data. So both are recomputed from all observations in their order and are not stored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mipcash.acquisition.catalogue import FantasisedEI
from mipcash.acquisition.inputs import Limited
from mipcash.program.forms import Indices, Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import MomentSection, OutcomeSection, Posterior

DRAWS = 64
"""Number of draws K."""
LEAST_RHO, MOST_RHO, MOST_LAMBDA = 1e-3, 10.0, 1e3
"""Bounds of rho and lambda. Noise that keeps a constraint from being met exactly would drive both to extremes."""


def normal_draws(count: int, outputs: int) -> Vector:
    """Return z, (count, outputs): fixed antithetic draws, with unit covariance if there are enough of them."""
    half = np.random.default_rng(0).normal(size=(count // 2, outputs))
    if len(half) > 2 * outputs:
        half = np.linalg.solve(np.linalg.cholesky(half.T @ half / len(half)), half.T).T
    return np.concatenate([half, -half])


@dataclass(frozen=True)
class Multipliers:
    """Multipliers lambda and penalty rho.

    Attributes:
        lam: shape (m,).
        rho: > 0.
    """

    lam: Vector
    rho: float

    @classmethod
    def of(cls, losses: Vector, excess: Vector) -> Multipliers:
        """Return lambda and rho after t observations in their order.

        Args:
            losses: f, shape (t,).
            excess: c, shape (t, m).
        """
        broken = np.any(excess > 0.0, axis=1)
        squares = np.sum(np.maximum(excess, 0.0) ** 2, axis=1)[broken]
        # Gramacy et al. divide by twice the best feasible loss, which has no meaning on a standardised scale
        rho = float(np.clip(squares.min() / 2.0, LEAST_RHO, MOST_RHO)) if len(squares) else 1.0
        now = cls(np.zeros(excess.shape[1]), rho)
        for k in range(1, len(losses) + 1):
            x = int(np.argmin(losses[:k] + now.psi(excess[:k]).sum(axis=1)))
            lam = np.clip(now.lam + excess[x] / now.rho, 0.0, MOST_LAMBDA)
            now = cls(lam, max(LEAST_RHO, now.rho / 2.0) if broken[x] else now.rho)
        return now

    def psi(self, excess: Vector) -> Vector:
        """Return psi_j(c): (..., m) -> (..., m)."""
        edge = self.lam * self.rho
        return np.asarray((np.maximum(0.0, edge + excess) ** 2 - edge**2) / (2.0 * self.rho))

    def slope(self, excess: Vector) -> Vector:
        """Return psi_j'(c): (..., m) -> (..., m)."""
        return np.asarray(np.maximum(0.0, self.lam * self.rho + excess) / self.rho)


@dataclass(frozen=True)
class Ends:
    """Finite bounds of outcome constraints: c_j = sign_j (g - end_j), with g the output of bound j.

    Attributes:
        output: index of the output of each bound, shape (m,).
        sign: 1 for an upper bound, -1 for a lower bound, shape (m,).
        end: bounds, shape (m,).
    """

    output: Indices
    sign: Vector
    end: Vector

    @classmethod
    def of(cls, limited: Sequence[Limited]) -> Ends:
        rows = [(i, s, e) for i, l in enumerate(limited) for s, e in ((1.0, l.high), (-1.0, l.low)) if math.isfinite(e)]
        output, sign, end = np.array(rows).reshape(-1, 3).T
        return cls(output.astype(np.int64), sign, end)

    def excess(self, outputs: Vector) -> Vector:
        """Return c of outputs: (..., n) -> (..., m)."""
        return np.asarray(self.sign * (outputs[..., self.output] - self.end))


@dataclass(frozen=True)
class Lagrangian:
    """L at K draws of the constraints, normal in the loss: :class:`mipcash.surrogates.protocols.Outcomes`.

    Attributes:
        loss: the posterior of f.
        outputs: posteriors of the n constrained outputs.
        ends: finite bounds of their constraints.
        multipliers: lambda, rho.
        draws: z, shape (K, n).
    """

    loss: Posterior
    outputs: Sequence[Posterior]
    ends: Ends
    multipliers: Multipliers
    draws: Vector

    def predict(self, points: Points) -> tuple[Vector, Vector]:
        """Return means and standard deviations: (K, B), (B,)."""
        mean, deviation = self.loss.predict(points)
        mu, sd = (np.stack(part, axis=1) for part in zip(*(o.predict(points) for o in self.outputs), strict=True))
        drawn = mu + sd * self.draws[:, None]
        return mean + self.multipliers.psi(self.ends.excess(drawn)).sum(axis=-1), deviation

    def section(self, z: Vector) -> OutcomeSection:
        """Return L as a function of the numbers at fixed binaries, (n_z,)."""
        return LagrangianSection(self, self.loss.section(z), [o.section(z) for o in self.outputs])


@dataclass(frozen=True)
class LagrangianSection:
    """L as a function of the numbers, with its gradients."""

    of: Lagrangian
    loss: MomentSection
    outputs: Sequence[MomentSection]

    def __call__(self, u: Vector) -> tuple[Vector, float, Vector, Vector]:
        """Return means (K,) and a deviation, with their gradients (K, D) and (D,), at the unit values (D,)."""
        mean, deviation, by_mean, by_deviation = self.loss(u)
        ends, draws = self.of.ends, self.of.draws
        moments = [output(u) for output in self.outputs]
        drawn = np.stack([m[0] + m[1] * draws[:, i] for i, m in enumerate(moments)], axis=1)
        excess = ends.excess(drawn)
        slopes = self.of.multipliers.slope(excess) * ends.sign
        means, gradient = (mean + self.of.multipliers.psi(excess).sum(axis=1), np.repeat(by_mean[None], len(draws), axis=0))
        for j, i in enumerate(ends.output.tolist()):
            _, _, by_mu, by_sd = moments[i]
            gradient = gradient + slopes[:, j, None] * (by_mu + draws[:, i, None] * by_sd)
        return means, deviation, gradient, by_deviation


def lagrangian_ei(loss: Posterior, limited: Sequence[Limited], observed: Points, draws: int = DRAWS) -> FantasisedEI:
    """Return minus the logarithm of the expected improvement of L.

    Args:
        limited: constrained outputs, at least one.
        observed: legal points in the order of their evaluation, at least one.
    """
    outputs, ends = [each.posterior for each in limited], Ends.of(limited)
    losses = loss.predict(observed)[0]
    excess = ends.excess(np.stack([o.predict(observed)[0] for o in outputs], axis=1))
    multipliers = Multipliers.of(losses, excess)
    best = float(np.min(losses + multipliers.psi(excess).sum(axis=1)))
    at = Lagrangian(loss, outputs, ends, multipliers, normal_draws(draws, len(outputs)))
    return FantasisedEI(at, np.full(draws, best))
