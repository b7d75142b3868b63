"""Constrained expected improvement per expected cost, where limits are looked at before the loss; to be minimised.

Notation
    i = 1..m      limits whose outputs are evaluated before the rest, in this order;   c_i their costs
    r             the cost of the rest, the loss among it, which is evaluated only where limits 1..m are kept
    P_i           probability that limit i is kept

    expected cost   C = sum_i c_i P_1 .. P_{i-1} + r P_1 .. P_m
    per cost        acquisition + log C,     d log C / d log P_i = (terms of C after the i-th) / C

Where r is large beside c, C is about r P: what is doubtful costs little, and the improvement alone decides. Where the outputs are
evaluated together C is constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mipcash.acquisition.acquisition import Acquisition
from mipcash.acquisition.constrained import Interval, Kept, SumSection
from mipcash.acquisition.ingredients import Limited
from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import MomentSection, Section


def expected_costs(log_p: Vector, costs: Vector, rest: float) -> tuple[Vector, Vector]:
    """log C and its derivatives by log P_i.

    Args:
        log_p: log P_i, shape (m, B).
        costs: c_i, shape (m,).
        rest: r.

    Returns:
        (B,) and (m, B).
    """
    b = log_p.shape[1]
    reached = np.exp(np.vstack([np.zeros((1, b)), np.cumsum(log_p, axis=0)]))
    terms = np.append(costs, rest)[:, None] * reached
    total = terms.sum(axis=0)
    after = np.cumsum(terms[::-1], axis=0)[::-1][1:]
    return np.log(total), after / total


@dataclass(frozen=True)
class LogCost:
    """log C.

    Attributes:
        limits: m of them, in the order in which they are evaluated.
        costs: c_i, shape (m,).
        rest: r.
    """

    limits: Sequence[Kept]
    costs: Vector
    rest: float

    @classmethod
    def of(cls, limited: Sequence[Limited], costs: Sequence[float], rest: float) -> LogCost:
        return cls([Kept(each.posterior, Interval.of(each)) for each in limited], np.asarray(costs), rest)

    def values(self, points: Points) -> Vector:
        """At a batch: shape (B,)."""
        log_p = [kept.interval.log_probability(*kept.posterior.predict(points)) for kept in self.limits]
        return expected_costs(np.array(log_p), self.costs, self.rest)[0]

    def section(self, z: Vector) -> Section:
        """At fixed binaries, (n_z,)."""
        sections = [(kept.posterior.section(z), kept.interval) for kept in self.limits]
        return CostSection(sections, self.costs, self.rest)


@dataclass(frozen=True)
class CostSection:
    """The same as a function of the numbers, with its gradient."""

    limits: Sequence[tuple[MomentSection, Interval]]
    costs: Vector
    rest: float

    def __call__(self, u: Vector) -> tuple[float, Vector]:
        """(D,) -> scalar, (D,)."""
        log_p, slopes = np.zeros((len(self.limits), 1)), np.zeros((len(self.limits), len(u)))
        for k, (posterior, interval) in enumerate(self.limits):
            mean, deviation, by_mean, by_deviation = posterior(u)
            log_p[k], first, second = interval.slope(mean, deviation)
            slopes[k] = first * by_mean + second * by_deviation
        value, by_log = expected_costs(log_p, self.costs, self.rest)
        return float(value[0]), by_log[:, 0] @ slopes


@dataclass(frozen=True)
class PerCost:
    """An acquisition that is the negative logarithm of a gain, per expected cost.

    Attributes:
        gain: that acquisition.
        cost: log C.
    """

    gain: Acquisition
    cost: LogCost

    def values(self, points: Points) -> Vector:
        """At a batch: shape (B,)."""
        return self.gain.values(points) + self.cost.values(points)

    def section(self, z: Vector) -> Section:
        """At fixed binaries, (n_z,)."""
        return SumSection(self.gain.section(z), self.cost.section(z))
