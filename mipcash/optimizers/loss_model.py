"""A model of the loss after a run, for analysis: predictions, and functions drawn from the posterior.

Notation
    X (t) observations;   f the loss on the scale of the surrogate, f = q + r (``mipcash.surrogates.structured.kernel``)
    Z (m) support points: observations and further points;   k = K + R the prior covariance of f
    a function drawn from the posterior:   F(x) = k(x, Z) k(Z, Z)^-1 F_Z,   F_Z ~ f(Z) | X

F has the posterior's distribution on Z. Between the points of Z it is the mean given F_Z, so variation of f there is left out.
This hardly affects averages over many points, such as importances.
Unless a state of an earlier fit is given, results depend neither on the optimizer of the study nor on the course of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from threadpoolctl import threadpool_limits

from mipcash.optimizers.data import Data
from mipcash.optimizers.hybrid import Hybrid
from mipcash.optimizers.optimizer import History, Limit
from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.space.domain import Domain
from mipcash.surrogates.structured.encoded import Encoded
from mipcash.surrogates.structured.evidence import chosen_part
from mipcash.surrogates.structured.posterior import StructuredPosterior

DEVIATIONS = 2.0
"""Standard deviations from the median to the ends of a band."""
LEAST = 4
"""Number of different losses that a model needs."""
SUPPORT = 240
"""Largest number of observations among the support points."""
TOGETHER = 2048
"""Points evaluated at a time."""
LIFTS = (1e-8, 1e-6, 1e-4, 1e-2)
"""Shares of the variance that are added to the diagonal of k(Z, Z), tried in turn until it can be factorised."""

Functions = Callable[[Points], Vector]
"""S functions at B points: (S, B)."""


@dataclass(frozen=True, eq=False)
class LossModel:
    """Model of the loss (see the module's description). Create it with ``of``.

    Attributes:
        domain: the space.
        posterior: the posterior of the loss.
        points: the observations.
        state: hyperparameters, from which the next fit starts.
    """

    domain: Domain
    posterior: StructuredPosterior
    points: Points
    state: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, domain: Domain, history: History, limits: tuple[Limit, ...] = (), state: Mapping[str, Any] | None = None
    ) -> LossModel | None:
        """Return the model fitted to all losses of a history; None if fewer than LEAST of them are different.

        Args:
            state: of an earlier fit; None: hyperparameters are searched from scratch.
        """
        data = Data.of(domain, history, limits)
        rows = data.known
        if len(np.unique(data.losses[rows])) < LEAST:
            return None
        optimizer = Hybrid(domain)
        with threadpool_limits(1):
            tables = optimizer.surrogate.prepare(data.points).part(rows)
            surrogate = optimizer._loss_surrogate(data)
            rng, noise = np.random.default_rng(0), data.noise(rows)
            posterior, after = surrogate.fit(tables, data.losses[rows], state or {}, rng, noise)
        return cls(domain, posterior, data.points[rows], after)

    def predict(self, points: Points) -> tuple[Vector, Vector]:
        """Return means and standard deviations of f: (B,), (B,)."""
        with threadpool_limits(1):
            return self.posterior.predict(points)

    def losses(self, values: Vector) -> Vector:
        """Return values of f on the scale of the loss; the order is preserved."""
        warp = self.posterior.warp
        return np.array([warp.inverse(float(v)) for v in np.ravel(values)]).reshape(np.shape(values))

    def band(self, points: Points, sign: float) -> tuple[Vector, Vector, Vector]:
        """Return the median of the noise-free loss and DEVIATIONS to each side, in the objective's own sign: (B,) each."""
        mean, deviation = self.predict(points)
        low, middle, high = (sign * self.losses(mean + sign * d * DEVIATIONS * deviation) for d in (-1.0, 0.0, 1.0))
        return middle, low, high

    def functions(self, support: Points, count: int, rng: np.random.Generator) -> Functions:
        """Return functions drawn from the posterior.

        Args:
            support: points, besides the observations, at which the functions have the posterior's distribution.
            count: S; the first function is the posterior mean.
        """
        posterior = self.posterior
        kernel, structure = posterior.kernel, posterior.kernel.structure
        kept = chosen_part(posterior.y, SUPPORT)
        at = Points.joined(self.points[kept], support)
        z = Encoded.of(structure, at)
        with threadpool_limits(1):
            values = posterior.draws(at, count, rng)
            values[0] = posterior.predict(at)[0]
            weights = _solved(kernel(z, z) + kernel.residual(z, z), values.T)

        def drawn(points: Points) -> Vector:
            parts = [np.zeros((0, count))]
            with threadpool_limits(1):
                for a in range(0, len(points), TOGETHER):
                    x = Encoded.of(structure, points[a : a + TOGETHER])
                    parts.append((kernel(x, z) + kernel.residual(x, z)) @ weights)
            return np.concatenate(parts).T

        return drawn


def _solved(covariance: Vector, values: Vector) -> Vector:
    """Return k(Z, Z)^-1 F_Z, raising the diagonal until it can be factorised: (m, m), (m, S) -> (m, S).

    Raises:
        numpy.linalg.LinAlgError: no share in LIFTS was enough.
    """
    scale = float(np.mean(np.diag(covariance)))
    for lift in LIFTS:
        with suppress(np.linalg.LinAlgError):
            factor = cho_factor(covariance + lift * scale * np.eye(len(covariance)), lower=True)
            return np.asarray(cho_solve(factor, values))
    raise np.linalg.LinAlgError("the covariance of the support points has no factor")
