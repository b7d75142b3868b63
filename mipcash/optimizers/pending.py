"""Models conditioned on pending evaluations, before their results are known.

Notation
    X' (B points) pending, of which an output is not known yet;   mu', sd' its predictions there;   s2 its fitted noise

Every output is conditioned on its own predicted means at X': means stay the same, and deviations shrink near pending points. For
the loss, K joint draws at X' are made as well, and expected improvement is averaged over them.

The pending values are treated as almost exact, with noise of s2 / 1000. If they had the noise s2, a large s2 would leave the
posterior unchanged, and the same point would be proposed again (docs/decisions/035-fantasies-of-what-is-pending.md).

The structured posterior given K sets of values at the pending points.

Notation
    X (t + B points) observations and pending points,   S their covariance,   Y (t + B, K) losses and guesses,   W = S^-1 Y
    means at x: (K + R)(x, X) W,   one deviation: (K + R)(x, x) - (K + R)(x, X) S^-1 (K + R)(X, x)

    best (K,) the incumbent values,   t_k = (best_k - mean_k) / sd
    EI = (1/K) sum_k sd h(t_k),   log EI = log sd + log sum_k exp(log h(t_k)) - log K,   h as in ``mipcash.acquisition.analytic``

Everything but W is shared, so K sets of values cost little more than one. Selecting one point after the other in this way is greedy
q-expected improvement (ginsbourger2010, snoek2012, wilson2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, Self, TypeVar

import numpy as np
from scipy.linalg import cho_solve

from mipcash.acquisition.analytic import log_h, log_h_slope
from mipcash.acquisition.catalogue import AcquisitionInputs
from mipcash.optimizers.outcome import LOSS
from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import Noise, Posterior, Section
from mipcash.surrogates.structured.posterior import StructuredPosterior


class FantasisedEI:
    """Negative logarithm of expected improvement over fantasies, an ``mipcash.acquisition.acquisition.Acquisition``.

    Attributes:
        posterior: given further points, at which the K draws differ.
        weights: of each draw, shape (t, K).
        best: incumbent of each draw, shape (K,).
    """

    def __init__(self, posterior: StructuredPosterior, values: Vector, best: Vector) -> None:
        """Take a posterior given further points, with each set of values, (K, B'), at them."""
        known = np.repeat(posterior.y[: -values.shape[1], None], len(values), axis=1)
        every = np.concatenate([known, values.T])
        self.posterior, self.best = posterior, best
        self.weights: Vector = cho_solve((posterior.lower.T, False), every, check_finite=False)

    def values(self, points: Points) -> Vector:
        """Return the acquisition at a batch: shape (B,)."""
        k, deviation = self.posterior.parts(points)
        logs = log_h((self.best[:, None] - (k @ self.weights).T) / deviation)
        return np.asarray(-(np.log(deviation) + np.logaddexp.reduce(logs, axis=0) - math.log(len(logs))))

    def section(self, z: Vector) -> Section:
        """Return the acquisition at fixed binaries, (n_z,)."""
        section = self.posterior.section(z)

        def at(u: Vector) -> tuple[float, Vector]:
            k, dk, deviation, by_deviation = section.parts(u)
            t = (self.best - k @ self.weights) / deviation
            logs = log_h(t)
            total = float(np.logaddexp.reduce(logs))
            shares, slopes = np.exp(logs - total), log_h_slope(t, logs)
            value = -(math.log(deviation) + total - math.log(len(logs)))
            first, second = shares * slopes / deviation, -float(shares @ (1.0 - t * slopes)) / deviation
            return value, np.asarray(first @ (self.weights.T @ dk) + second * by_deviation)

        return at


class Conditionable(Protocol):
    """A posterior that can be conditioned on further observations."""

    def predict(self, points: Points) -> tuple[Vector, Vector]: ...
    def given(self, points: Points, values: Vector, noise: Noise = 0.0) -> Self: ...


P = TypeVar("P", bound=Conditionable)
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
    return replace(fitted, loss=given, limited=limited, improvement=FantasisedEI(given, drawn, best))


def believed(posterior: P, points: Points, noise: Noise = 0.0) -> P:
    """Return the posterior conditioned on its own means at some points (the "kriging believer" of ginsbourger2010)."""
    return posterior.given(points, posterior.predict(points)[0], noise) if len(points) else posterior


def _exact(posterior: Posterior) -> float:
    return EXACT * posterior.fitted_noise
