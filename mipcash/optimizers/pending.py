"""Models conditioned on pending evaluations, before their results are known.

Notation
    X' (B points) pending, of which an output is not known yet;   mu', sd' its predictions there;   s2 its fitted noise

Every output is conditioned on its own predicted means at X': means stay the same, and deviations shrink near pending points. For
the loss, K joint draws at X' are made as well, and expected improvement is averaged over them
(``mipcash.acquisition.catalogue``).

The pending values are treated as almost exact, with noise of s2 / 1000. If they had the noise s2, a large s2 would leave the
posterior unchanged, and the same point would be proposed again (docs/decisions/035-fantasies-of-what-is-pending.md).

The structured posterior given K sets of values at the pending points.

Notation
    X (t + B points) observations and pending points,   S their covariance,   Y (t + B, K) losses and guesses,   W = S^-1 Y
    means at x: (K + R)(x, X) W,   one deviation: (K + R)(x, x) - (K + R)(x, X) S^-1 (K + R)(X, x)

Everything but W is shared, so K sets of values cost little more than one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from scipy.linalg import cho_solve

from mipcash.acquisition.inputs import AcquisitionInputs, Fantasies
from mipcash.optimizers.outcome import LOSS
from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import Noise, Posterior
from mipcash.surrogates.structured.posterior import PosteriorSection, StructuredPosterior


@dataclass(frozen=True)
class StructuredOutcomes:
    """K posteriors that differ in the values of the last points.

    Attributes:
        posterior: the posterior given all points, with any set of the values.
        weights: W.
    """

    posterior: StructuredPosterior
    weights: Vector

    @classmethod
    def of(cls, posterior: StructuredPosterior, values: Vector) -> StructuredOutcomes:
        """Return a posterior given further points, with each set of values at them.

        Args:
            posterior: given B further points by ``StructuredPosterior.given``, with any values.
            values: on the scale of predictions, shape (K, B).
        """
        known = np.repeat(posterior.y[: -values.shape[1], None], len(values), axis=1)
        return cls(
            posterior, cho_solve((posterior.lower.T, False), np.concatenate([known, values.T]), check_finite=False)
        )

    def predict(self, points: Points) -> tuple[Vector, Vector]:
        """Return means and standard deviations of f: (K, B), (B,)."""
        k, deviation = self.posterior.parts(points)
        return (k @ self.weights).T, deviation

    def section(self, z: Vector) -> StructuredOutcomesSection:
        """Return the moments at fixed binaries z (n_z,), as functions of the numerical parameters."""
        return StructuredOutcomesSection(self.posterior.section(z), self.weights)


@dataclass(frozen=True)
class StructuredOutcomesSection:
    """K means and the standard deviation of f(z, .), and their gradients with respect to u."""

    section: PosteriorSection
    weights: Vector

    def __call__(self, u: Vector) -> tuple[Vector, float, Vector, Vector]:
        """Return means and deviation with gradients: (J,) -> means (K,), deviation, (K, J), (J,)."""
        k, dk, deviation, gradient = self.section.parts(u)
        return k @ self.weights, deviation, self.weights.T @ dk, gradient


P = TypeVar("P", bound=Posterior)
FANTASIES = 8
"""K, the number of draws."""
EXACT = -0.999
"""Noise added to the fitted noise for a pending outcome, as a multiple of the fitted noise."""


Awaited = Callable[[str], Points]
"""Function that returns the points at which an output, by name, is pending."""


def beside_pending(
    fitted: AcquisitionInputs, loss: StructuredPosterior, awaited: Awaited, rng: np.random.Generator
) -> AcquisitionInputs:
    """Return the models conditioned on pending evaluations; a model without pending outputs is unchanged.

    Args:
        fitted: models fitted to the observations alone.
        loss: the posterior of the loss in ``fitted``.
        awaited: returns the pending points of an output.
    """
    limited = {
        name: replace(l, posterior=believed(l.posterior, awaited(name), _exact(l.posterior)))
        for name, l in fitted.limited.items()
    }
    points = awaited(LOSS)
    if not len(points):
        return replace(fitted, limited=limited)
    beside = loss.beside(points)
    drawn = loss.draws(beside, FANTASIES, rng)
    # with outcome constraints, it is unknown if pending configurations are feasible, so they do not lower the incumbent
    best = np.full(FANTASIES, fitted.best) if limited else np.minimum(fitted.best, drawn.min(axis=1))
    given = loss.given(beside, None, _exact(loss))
    fantasies = Fantasies(StructuredOutcomes.of(given, drawn), best)
    return replace(fitted, loss=given, limited=limited, fantasies=fantasies)


def believed(posterior: P, points: Points, noise: Noise = 0.0) -> P:
    """Return the posterior conditioned on its own means at some points (the "kriging believer" of ginsbourger2010)."""
    return posterior.given(points, posterior.predict(points)[0], noise) if len(points) else posterior


def _exact(posterior: Posterior) -> float:
    return EXACT * posterior.fitted_noise
