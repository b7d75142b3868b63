"""What a surrogate is: the contract between what learns from evaluations and what searches.

Notation
    Points      B points: levels (B, G), units (B, D)  (:mod:`mipcash.program.points`)
    z (n_z,)    one-hot binaries of one point's levels;   u (D,) its numbers on the unit scale
    y (t,)      values of one output at t observed points;   v their noise variances beside what the surrogate fits itself
    f           the output as the surrogate sees it, on a scale of its own; noise is not in it

A :class:`Surrogate` serves one output. It holds settings alone: what a fit leaves for the next one, the state of its
hyperparameters, goes out as JSON and comes in again. What depends on the observed points alone is a :class:`Prepared`, which the
surrogates of several outputs share where they are of one kind over one space.

A fit gives a :class:`Posterior`: f given the observations, at fixed hyperparameters. Its mean and its samples are
:class:`MixedFunction` s, which a MIP minimises at fixed numbers; where only values or sections are needed, any acquisition
function may be made of its moments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from mipcash.deadline import NEVER, Deadline
from mipcash.program.forms import Indices, QuadraticForm, Vector
from mipcash.program.points import Points

Noise = float | Vector
"""Variances beside the fitted noise: one for all observations, or one each, shape (t,)."""

Section = Callable[[Vector], tuple[float, Vector]]
"""A function of the numbers alone, with its gradient: (D,) -> scalar, (D,)."""

MomentSection = Callable[[Vector], tuple[float, float, Vector, Vector]]
"""Mean and deviation as functions of the numbers alone, with their gradients: (D,) -> scalar, scalar, (D,), (D,)."""

OutcomeSection = Callable[[Vector], tuple[Vector, float, Vector, Vector]]
"""K means and their one deviation as functions of the numbers alone: (D,) -> (K,), scalar, (K, D), (D,)."""

State = Mapping[str, Any]
"""Hyperparameters and what their next fit must know, in JSON's types; ``{}`` before the first fit."""


class Sectioned(Protocol):
    """A function whose numbers can move while its levels stay."""

    def section(self, z: Vector) -> Section:
        """The function at fixed binaries, (n_z,)."""


class MixedFunction(Sectioned, Protocol):
    """A function over a mixed space that is quadratic in the binaries: the mean of a posterior, or a sample of it."""

    def value(self, z: Vector, u: Vector) -> float:
        """At one point, (n_z,) and (D,)."""

    def values(self, points: Points) -> Vector:
        """At a batch: shape (B,)."""

    def form_at(self, u: Vector) -> QuadraticForm:
        """The function at fixed numbers, (D,), as a quadratic form over the base columns of the program; exact."""

    def loss(self, value: float) -> float:
        """A value of the function on the scale of the output."""


class Moments(Protocol):
    """Mean and deviation of a function that is normally distributed at every point."""

    def predict(self, points: Points) -> tuple[Vector, Vector]:
        """Means and standard deviations of f: (B,), (B,)."""

    def section(self, z: Vector) -> MomentSection:
        """The moments at fixed binaries, (n_z,)."""


class Posterior(Moments, Protocol):
    """f given what was observed, at fixed hyperparameters.

    Means and samples as functions may be of a part of f alone, the one that a form can hold: predictions are of all of it.
    """

    @property
    def fitted(self) -> Vector:
        """Means of f at the observations, those of :meth:`given` last; shape (t,)."""

    @property
    def fitted_noise(self) -> float:
        """Variance of an observation about f that the fit found, beside what was told of its noise."""

    def scaled(self, values: Vector) -> Vector:
        """Values of the output on the scale of f, whose order it keeps; functions go back by ``loss``."""

    def mean(self) -> MixedFunction:
        """The posterior mean as a function that a MIP can minimise."""

    def sample(self, rng: np.random.Generator, inflation: float = 1.0) -> MixedFunction:
        """A sample as a function that a MIP can minimise; ``inflation`` multiplies the posterior covariance."""

    def given(self, points: Points, values: Vector, noise: Noise = 0.0) -> Self:
        """Conditioned on further observations at the same hyperparameters: what is pending, at guessed values.

        Args:
            points: B of them.
            values: on the scale of f, as predictions are; shape (B,).
            noise: variances on that scale beside the fitted one; minus the fitted one, or little less: of values of f itself.
        """


class Outcomes(Protocol):
    """Posteriors given the same further points at K sets of values each: their means differ, and not their deviations."""

    def predict(self, points: Points) -> tuple[Vector, Vector]:
        """Means and standard deviations of f: (K, B), (B,)."""

    def section(self, z: Vector) -> OutcomeSection:
        """The moments at fixed binaries, (n_z,)."""


class Prepared(Protocol):
    """What a fit needs of t observed points, whatever was observed there; made when it is first asked for."""

    def __len__(self) -> int:
        """t."""

    def part(self, rows: Indices) -> Self:
        """The same of some of the points, increasing rows: where an output is known at these alone."""


P = TypeVar("P", bound=Prepared)
Q = TypeVar("Q", bound=Posterior, covariant=True)


class Surrogate(Protocol[P, Q]):
    """Fits posteriors of one output, and keeps nothing between two fits but what it hands out."""

    def prepare(self, points: Points) -> P:
        """What depends on the observed points alone, for :meth:`fit` of every output that is observed there."""

    def fit(
        self,
        prepared: P,
        values: Vector,
        state: State,
        rng: np.random.Generator,
        noise: Noise = 0.0,
        deadline: Deadline = NEVER,
    ) -> tuple[Q, dict[str, Any]]:
        """The posterior, and the state for the next fit.

        Args:
            prepared: of the observed points.
            values: y, shape (t,).
            state: of the fit before, ``{}`` at the first.
            rng: for features that are drawn; a surrogate without any leaves it alone.
            noise: v on the scale of the values.
            deadline: when the search for hyperparameters ends; the best that were seen by then are taken.
        """
