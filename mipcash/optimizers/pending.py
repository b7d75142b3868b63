"""What is being evaluated teaches before it is told: models given what pending evaluations may come to.

Notation
    X' (B points) pending, of which an output is not known yet;   mu', sd' its predictions there;   s2 its fitted noise

Every output is given its means at X': means stay, and deviations fall around what is pending. The loss is given K joint draws of
itself besides, over which expected improvement is averaged (:mod:`mipcash.acquisition.catalogue`).

What is pending is taken for known exactly, but for a thousandth of s2. Where s2 hides what is left to learn, an outcome with noise
would change nothing, and the same point would be proposed beside itself (docs/decisions/035-fantasies-of-what-is-pending.md).

The structured posterior given what pending evaluations may come to: K sets of values at the same points.

Notation
    X (t + B points) observations and pending points,   S their covariance,   Y (t + B, K) losses and guesses,   W = S^-1 Y
    means at x: (K + R)(x, X) W,   one deviation: (K + R)(x, x) - (K + R)(x, X) S^-1 (K + R)(X, x)

All but W is shared, so that K sets of values cost little more than one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from scipy.linalg import cho_solve

from mipcash.acquisition.ingredients import Fantasies, Ingredients
from mipcash.optimizers.outcome import LOSS
from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import Noise, Posterior
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


P = TypeVar("P", bound=Posterior)
FANTASIES = 8
"""K."""
EXACT = -0.999
"""Noise of a pending outcome beside the fitted one, in units of it."""


Awaited = Callable[[str], Points]
"""The points at which an output, by name, is being evaluated."""


def beside_pending(
    fitted: Ingredients, loss: StructuredPosterior, awaited: Awaited, rng: np.random.Generator
) -> Ingredients:
    """The models given what is pending; as they are where none of their outputs is awaited.

    Args:
        fitted: given what was observed alone.
        loss: its posterior of the loss.
        awaited: what is pending.
    """
    limited = {
        name: replace(l, posterior=believed(l.posterior, awaited(name), _exact(l.posterior)))
        for name, l in fitted.limited.items()
    }
    points = awaited(LOSS)
    if not len(points):
        return replace(fitted, limited=limited)
    drawn = drawn_jointly(loss, points, FANTASIES, rng)
    # whether what is pending keeps the limits is not known
    best = np.full(FANTASIES, fitted.best) if limited else np.minimum(fitted.best, drawn.min(axis=1))
    outcomes = StructuredOutcomes.of(loss, points, drawn, _exact(loss))
    return replace(
        fitted, loss=believed(loss, points, _exact(loss)), limited=limited, fantasies=Fantasies(outcomes, best)
    )


def believed(posterior: P, points: Points, noise: Noise = 0.0) -> P:
    """Given its own means at points (the "kriging believer" of ginsbourger2010)."""
    return posterior.given(points, posterior.predict(points)[0], noise) if len(points) else posterior


def drawn_jointly(posterior: StructuredPosterior, points: Points, count: int, rng: np.random.Generator) -> Vector:
    """Joint draws of f at B points, one point after the other, at least one: (count, B)."""
    values = np.zeros((count, 0))
    for b in range(len(points)):
        here = points[b : b + 1]
        given = StructuredOutcomes.of(posterior, points[:b], values, _exact(posterior)) if b else posterior
        means, deviation = given.predict(here)
        drawn = np.reshape(means, (-1, 1)) + deviation * rng.normal(size=(count, 1))
        values = np.concatenate([values, drawn], axis=1)
    return values


def _exact(posterior: Posterior) -> float:
    return EXACT * posterior.fitted_noise
