"""The loss as the default optimizer's model sees it after a run, for those who look at it: predictions, and whole functions.

Notation
    X (t) observations;   f the loss on the scale of the surrogate, f = q + r (:mod:`mipcash.surrogates.structured.kernel`)
    Z (m) support points: observations and others;   k = K + R the prior covariance of f
    a function drawn from the posterior:   F(x) = k(x, Z) k(Z, Z)^-1 F_Z,   F_Z ~ f(Z) | X

F has the posterior's distribution on Z; elsewhere it is the mean given F_Z, so that what f does between the points of Z is left
out. Averages over many points, which is what importance is made of, hardly see it.
The surrogate is fitted anew, so that what is shown does not depend on the optimizer of a study, nor on the way its run went.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

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

LEAST = 4
"""Different losses from which on there is a model."""
SUPPORT = 240
"""Observations among the support points, at most."""
TOGETHER = 2048
"""Points that are evaluated at a time."""
LIFTS = (1e-8, 1e-6, 1e-4, 1e-2)
"""Shares of the variance by which the diagonal of k(Z, Z) is raised until it has a factor."""

Functions = Callable[[Points], Vector]
"""S functions at B points: (S, B)."""


@dataclass(frozen=True, eq=False)
class LossModel:
    """See the module's description. Make one with :meth:`of`.

    Attributes:
        domain: the space.
        posterior: of the loss.
        points: the observations.
    """

    domain: Domain
    posterior: StructuredPosterior
    points: Points

    @classmethod
    def of(cls, domain: Domain, history: History, limits: tuple[Limit, ...] = ()) -> LossModel | None:
        """Fitted to all losses of a history; None: there are fewer than LEAST different ones."""
        data = Data.of(domain, history, limits)
        rows = data.known
        if len(np.unique(data.losses[rows])) < LEAST:
            return None
        optimizer = Hybrid(domain)
        with threadpool_limits(1):
            tables = optimizer.surrogate.prepare(data.points).part(rows)
            surrogate = optimizer._loss_surrogate(data)
            posterior, _ = surrogate.fit(tables, data.losses[rows], {}, np.random.default_rng(0), data.noise(rows))
        return cls(domain, posterior, data.points[rows])

    def predict(self, points: Points) -> tuple[Vector, Vector]:
        """Means and standard deviations of f: (B,), (B,)."""
        with threadpool_limits(1):
            return self.posterior.predict(points)

    def losses(self, values: Vector) -> Vector:
        """Values of f on the scale of the loss, whose order they keep."""
        warp = self.posterior.warp
        return np.array([warp.inverse(float(v)) for v in np.ravel(values)]).reshape(np.shape(values))

    def functions(self, support: Points, count: int, rng: np.random.Generator) -> Functions:
        """Functions drawn from the posterior.

        Args:
            support: points beside the observations where they are to have its distribution.
            count: S; the first is the mean itself.
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
    """k(Z, Z)^-1 F_Z, with a diagonal that is raised until there is a factor: (m, m), (m, S) -> (m, S)."""
    scale = float(np.mean(np.diag(covariance)))
    for lift in LIFTS:
        with suppress(np.linalg.LinAlgError):
            factor = cho_factor(covariance + lift * scale * np.eye(len(covariance)), lower=True)
            return np.asarray(cho_solve(factor, values))
    raise np.linalg.LinAlgError("the covariance of the support points has no factor")
