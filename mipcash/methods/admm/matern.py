"""A Gaussian process over vectors with a Matern-5/2 kernel and a length-scale per column, with all gradients in closed form.

It is the usual model of Bayesian optimization (liu2020, appendix 3; rasmussen2006, Sec. 4.2 and 5.4) in the unit cube: over the
active numerical parameters of a subproblem, or over a whole configuration with one-hot columns.

Notation
    x (t, d)    observed rows;   y (t,) their values, standardised;   v (t,) variances beside the fitted noise, on that scale.
    r2          sum_j (x_j - x'_j)^2 / l_j^2,   a = sqrt(5 r2).
    k(x, x')    s (1 + a + a^2 / 3) exp(-a),    dk / dr2 = -5/6 s (1 + a) exp(-a).
    S           k(X, X) + n I + diag(v);   alpha = S^-1 y.
    theta       log of [s, n, l (d)], each with an independent normal prior

The gradient with respect to all length-scales costs one matrix product: with M = W o dk/dr2 and W = alpha alpha' - S^-1,

    sum_ab M_ab (x_aj - x_bj)^2 = 2 sum_a x_aj (x_aj rows(M)_a - (M x)_aj)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from mipcash.deadline import NEVER, Deadline
from mipcash.program.forms import Vector
from mipcash.surrogates.covariance import cholesky, standardisation
from mipcash.surrogates.maximum import maximum

ITERATIONS = 30
"""Iterations of L-BFGS-B on the evidence."""
LEAST_VARIANCE = 1e-12


def prior_of(columns: int) -> tuple[Vector, Vector]:
    """Return means and standard deviations of theta.

    The median of a length-scale grows with sqrt(d), as distances do. Otherwise the prior of a model with many columns would say
    that observations carry no information about other points.
    """
    medians = [1.0, 1e-3, *[0.5 * math.sqrt(max(columns, 1))] * columns]
    return np.log(medians), np.array([1.0, 1.5, *[1.0] * columns])


@dataclass(frozen=True, eq=False)
class MaternProcess:
    """The process given its observations, at fixed hyperparameters; make one with ``fit``.

    Attributes:
        x: observed rows, (t, d).
        y: their standardised values, (t,).
        theta: hyperparameters, (2 + d,).
        shift, scale: a value is ``shift + scale y``.
        noise: v, (t,), on the scale of y.
    """

    x: Vector
    y: Vector
    theta: Vector
    shift: float
    scale: float
    noise: Vector

    @classmethod
    def fit(
        cls,
        x: Vector,
        values: Vector,
        noise: Vector | float = 0.0,
        start: Vector | None = None,
        iterations: int = ITERATIONS,
        deadline: Deadline = NEVER,
    ) -> MaternProcess:
        """Fit the hyperparameters by maximum a posteriori estimation.

        Args:
            x: rows in [0, 1]^d, (t, d); t at least 1.
            values: (t,), finite.
            noise: variances of the values beside the fitted noise, (t,) or one for all.
            start: theta to start from, as an earlier fit left it; a vector of another length is ignored.
            iterations: of the descent; 0: theta is the start.
            deadline: when the descent ends.
        """
        shift, scale = standardisation(values)
        y, v = values / scale - shift / scale, np.broadcast_to(np.asarray(noise, dtype=float), len(x)) / scale / scale
        mean, sd = prior_of(x.shape[1])
        starts = [start] if start is not None and len(start) == len(mean) else [mean]
        theta = starts[0]
        if iterations:

            def objective(at: Vector) -> tuple[float, Vector]:
                value, slope = negative_evidence(at, x, y, v)
                off = (at - mean) / sd
                return value + 0.5 * float(off @ off), slope + off / sd

            theta, _ = maximum(objective, (mean, sd), starts, iterations, deadline)
        return cls(x, y, theta, shift, scale, np.array(v))

    @property
    def variance(self) -> float:
        """The signal variance s."""
        return math.exp(self.theta[0])

    @property
    def fitted_noise(self) -> float:
        """The noise variance n."""
        return math.exp(self.theta[1])

    @property
    def lengths(self) -> Vector:
        """The length-scales l, (d,)."""
        return np.asarray(np.exp(self.theta[2:]))

    @cached_property
    def _scaled(self) -> Vector:
        return self.x / self.lengths

    @cached_property
    def _factor(self) -> tuple[Vector, bool]:
        k, _ = _kernel(_squares(self._scaled, self._scaled), self.variance)
        return cholesky(k, math.exp(self.theta[1]) + self.noise)

    @cached_property
    def _alpha(self) -> Vector:
        return np.asarray(cho_solve(self._factor, self.y, check_finite=False))

    def predict(self, x: Vector) -> tuple[Vector, Vector]:
        """Return means and standard deviations of the function, standardised: (B, d) -> (B,), (B,)."""
        k, _ = _kernel(_squares(x / self.lengths, self._scaled), self.variance)
        half = solve_triangular(self._factor[0], k.T, lower=True, check_finite=False)
        variance = self.variance - np.einsum("tb,tb->b", half, half)
        return k @ self._alpha, np.sqrt(np.maximum(variance, LEAST_VARIANCE))

    def slope(self, x: Vector) -> tuple[float, float, Vector, Vector]:
        """Return mean and deviation at one row, and their gradients: (d,) -> scalar, scalar, (d,), (d,)."""
        lengths = self.lengths
        apart = x / lengths - self._scaled
        k, by_square = _kernel(np.einsum("td,td->t", apart, apart), self.variance)
        weights = cho_solve(self._factor, k, check_finite=False)
        variance = self.variance - float(k @ weights)
        deviation = math.sqrt(max(variance, LEAST_VARIANCE))
        slopes = (2.0 * by_square)[:, None] * apart / lengths
        by_variance = -2.0 * (weights @ slopes) if variance > LEAST_VARIANCE else np.zeros(len(x))
        return float(k @ self._alpha), deviation, self._alpha @ slopes, by_variance / (2.0 * deviation)

    def standardised(self, values: Vector) -> Vector:
        """Return values on the scale of predictions."""
        return np.asarray(values / self.scale - self.shift / self.scale)

    def given(self, x: Vector, noise: float = 0.0) -> MaternProcess:
        """Return the process with further rows, (b, d), at their means: means stay, deviations shrink near them (ginsbourger2010).

        Args:
            noise: variance of their values in addition to the fitted noise. For noise-free values of the function, pass minus the
                fitted noise, or slightly more.
        """
        if not len(x):
            return self
        v = np.concatenate([self.noise, np.full(len(x), noise)])
        y = np.concatenate([self.y, self.predict(x)[0]])
        return replace(self, x=np.concatenate([self.x, x]), y=y, noise=v)


def negative_evidence(theta: Vector, x: Vector, y: Vector, v: Vector) -> tuple[float, Vector]:
    """Return minus the log likelihood of y at x, up to a constant, and its gradient with respect to theta."""
    variance, noise = math.exp(theta[0]), math.exp(theta[1])
    scaled = x / np.exp(theta[2:])
    k, by_square = _kernel(_squares(scaled, scaled), variance)
    factor = cholesky(k, noise + v)
    inverse = np.asarray(cho_solve(factor, np.eye(len(x)), check_finite=False))
    alpha = inverse @ y
    value = 0.5 * float(y @ alpha) + float(np.log(np.diag(factor[0])).sum())
    w = np.outer(alpha, alpha) - inverse
    m = w * by_square
    by_lengths = 2.0 * np.einsum("td,td->d", scaled, m.sum(axis=1)[:, None] * scaled - m @ scaled)
    slope = np.concatenate([[-0.5 * float(np.sum(w * k)), -0.5 * noise * float(np.trace(w))], by_lengths])
    return value, slope


def _squares(a: Vector, b: Vector) -> Vector:
    """Return squared distances of scaled rows: (B, d), (t, d) -> (B, t)."""
    square = np.einsum("bd,bd->b", a, a)[:, None] + np.einsum("td,td->t", b, b) - 2.0 * (a @ b.T)
    return np.asarray(np.maximum(square, 0.0))


def _kernel(square: Vector, variance: float) -> tuple[Vector, Vector]:
    """Return k and dk / dr2 at squared distances."""
    a = np.sqrt(5.0 * square)
    decay = variance * np.exp(-a)
    return decay * (1.0 + a + a * a / 3.0), -5.0 / 6.0 * decay * (1.0 + a)
