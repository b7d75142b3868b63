"""The structured posterior given what pending evaluations may come to: K sets of values at the same points.

Notation
    X (t + B points) observations and pending points,   S their covariance,   Y (t + B, K) losses and guesses,   W = S^-1 Y
    means at x: (K + R)(x, X) W,   one deviation: (K + R)(x, x) - (K + R)(x, X) S^-1 (K + R)(X, x)

All but W is shared, so that K sets of values cost little more than one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve

from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.surrogates.base import Noise
from mipcash.surrogates.structured.posterior import PosteriorSection, StructuredPosterior


@dataclass(frozen=True)
class StructuredOutcomes:
    """K posteriors that differ in what the last points came to.

    Attributes:
        posterior: given all points, at any of the values.
        weights: W.
    """

    posterior: StructuredPosterior
    weights: Vector

    @classmethod
    def of(
        cls, posterior: StructuredPosterior, points: Points, values: Vector, noise: Noise = 0.0
    ) -> StructuredOutcomes:
        """A posterior given further points at each set of values.

        Args:
            points: B of them, at least one.
            values: on the scale of predictions, shape (K, B).
            noise: as in :meth:`StructuredPosterior.given`.
        """
        first = posterior.given(points, values[0], noise)
        known = np.repeat(posterior.y[:, None], len(values), axis=1)
        return cls(first, np.asarray(cho_solve((first.lower, True), np.concatenate([known, values.T]))))

    def predict(self, points: Points) -> tuple[Vector, Vector]:
        """Means and standard deviations of f: (K, B), (B,)."""
        k, deviation = self.posterior.parts(points)
        return (k @ self.weights).T, deviation

    def section(self, z: Vector) -> StructuredOutcomesSection:
        """The moments at fixed binaries z (n_z,), as functions of the numbers."""
        return StructuredOutcomesSection(self.posterior.section(z), self.weights)


@dataclass(frozen=True)
class StructuredOutcomesSection:
    """K means and the standard deviation of f(z, .), and their gradients by u."""

    section: PosteriorSection
    weights: Vector

    def __call__(self, u: Vector) -> tuple[Vector, float, Vector, Vector]:
        """(J,) -> means (K,), deviation, (K, J), (J,)."""
        k, dk, deviation, gradient = self.section.parts(u)
        return k @ self.weights, deviation, self.weights.T @ dk, gradient
