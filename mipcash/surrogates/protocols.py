"""Protocols of surrogates: the interface between the models that are fitted to evaluations and the searches.

Notation
    Points      B points: levels (B, G), unit values (B, D)  (``mipcash.program.points``)
    z (n_z,)    one-hot binaries of one point's levels;   u (D,) its numerical parameters on the unit scale
    y (t,)      values of one output at t observed points;   v their known noise variances, in addition to the fitted one
    f           the noise-free output on the surrogate's own scale

A ``Surrogate`` serves one output. It holds settings only. The state of its hyperparameters is passed into and returned from
each fit, as JSON. Data that depend on the observed points alone are a ``Prepared``, shared by surrogates of several outputs
if these are of one kind over one space.

A fit returns a ``Posterior``: f given the observations, at fixed hyperparameters. Its mean and its samples are
``MixedFunction`` objects, which a MIP minimises at fixed numerical values. Acquisition functions that need only values or sections
can be built from its moments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from mipcash.deadline import NEVER, Deadline
from mipcash.program.forms import Indices, QuadraticForm, Vector
from mipcash.program.points import Points

Noise = float | Vector
"""Known noise variances in addition to the fitted one: one for all observations, or one each, shape (t,)."""

Section = Callable[[Vector], tuple[float, Vector]]
"""A function of the numbers alone, with its gradient: (D,) -> scalar, (D,)."""

MomentSection = Callable[[Vector], tuple[float, float, Vector, Vector]]
"""Mean and deviation as functions of the numbers alone, with their gradients: (D,) -> scalar, scalar, (D,), (D,)."""

State = Mapping[str, Any]
"""Hyperparameters and other state that the next fit needs, in JSON types; ``{}`` before the first fit."""


class Sectioned(Protocol):
    """A function that can be restricted to fixed levels, as a function of the numerical parameters."""

    def section(self, z: Vector) -> Section:
        """Return the function at fixed binaries, (n_z,)."""


class MixedFunction(Sectioned, Protocol):
    """A function over a mixed space that is quadratic in the binaries: the mean of a posterior, or a sample of it."""

    def value(self, z: Vector, u: Vector) -> float:
        """Return the value at one point, (n_z,) and (D,)."""

    def values(self, points: Points) -> Vector:
        """Return the values at a batch: shape (B,)."""

    def form_at(self, u: Vector) -> QuadraticForm:
        """Return the function at fixed unit values, (D,), as an exact quadratic form over the base columns of the program."""

    def loss(self, value: float) -> float:
        """Return a value of the function, transformed to the scale of the output."""


class Moments(Protocol):
    """Mean and deviation of a function that is normally distributed at every point."""

    def predict(self, points: Points) -> tuple[Vector, Vector]:
        """Return means and standard deviations of f: (B,), (B,)."""

    def section(self, z: Vector) -> MomentSection:
        """Return the moments at fixed binaries, (n_z,)."""


class Posterior(Moments, Protocol):
    """Posterior of f given the observations, at fixed hyperparameters.

    The mean and samples as functions may cover only the part of f that a quadratic form can represent. Predictions cover all of f.
    """

    @property
    def fitted(self) -> Vector:
        """Means of f at the observations, those added by ``given`` last; shape (t,)."""

    @property
    def fitted_noise(self) -> float:
        """Fitted noise variance of an observation, without the known noise passed to the fit."""

    def scaled(self, values: Vector) -> Vector:
        """Return values of the output on the scale of f, which is increasing. ``loss`` of a function transforms back."""

    def mean(self) -> MixedFunction:
        """Return the posterior mean as a function that a MIP can minimise."""

    def sample(self, rng: np.random.Generator) -> MixedFunction:
        """Return a sample as a function that a MIP can minimise."""

    def given(self, points: Points, values: Vector, noise: Noise = 0.0) -> Self:
        """Return the posterior conditioned on further observations, such as guesses for pending ones, at the same hyperparameters.

        Args:
            points: B of them.
            values: on the scale of f, as predictions are; shape (B,).
            noise: noise variances on that scale, in addition to the fitted one. For noise-free values of f, pass minus the fitted
                variance, or slightly more.
        """


class Prepared(Protocol):
    """Data of t observed points that a fit needs and that do not depend on the observed values; computed on first use."""

    def __len__(self) -> int:
        """Return t."""

    def part(self, rows: Indices) -> Self:
        """Return the data of some of the points, in increasing order of rows, for an output observed only at these."""


P = TypeVar("P", bound=Prepared)
Q = TypeVar("Q", bound=Posterior, covariant=True)


class Surrogate(Protocol[P, Q]):
    """Fits posteriors of one output; stateless between fits, as the state is returned to the caller."""

    def prepare(self, points: Points) -> P:
        """Return the data that depend on the observed points alone, for ``fit`` of every output observed there."""

    def fit(
        self,
        prepared: P,
        values: Vector,
        state: State,
        rng: np.random.Generator,
        noise: Noise = 0.0,
        deadline: Deadline = NEVER,
    ) -> tuple[Q, dict[str, Any]]:
        """Return the posterior, and the state for the next fit.

        Args:
            prepared: data of the observed points, from ``prepare``.
            values: y, shape (t,).
            state: state returned by the previous fit; ``{}`` at the first fit.
            rng: draws random features; ignored by a surrogate without any.
            noise: v on the scale of the values.
            deadline: time at which the search for hyperparameters ends; the best found by then are used.
        """
