"""Default values and prior weights of parameters: the expectations of a user about the optimum.

Notation
    u           unit value of a real or integer, in [0, 1]
    pi(u)       prior density on the unit scale, relative to the uniform density; of a list the weight of a value, relative to equal
                weights
    nodes       NODES values of u at equal distances; log pi is tabulated there and linear between them

Only the ratio of weights matters. A value without weight keeps a small one, so that data can overrule the prior.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipcash.errors import SpaceError, warn
from mipcash.modelling.domains import Integer, ParameterDomain, Permutation, Real, Value, is_number, short_list

Vector = NDArray[np.float64]

NODES = 257
"""Number of nodes of a tabulated prior."""
LEAST = -15.0
"""Least log pi relative to its maximum, 3e-7."""
OUTSIDE, STRONG = 0.05, 3.0
"""Share of a prior in the range below which there is a warning, if log pi varies by more than STRONG there."""


@dataclass(frozen=True, eq=False)
class Expectation:
    """Default value and prior of a parameter.

    Attributes:
        default: the default value, alone in a tuple; None: none is given, and None itself cannot be a default.
        table: log pi, of each value of a list, (L,), or at the nodes, (NODES,); None: no prior is given.
    """

    default: tuple[Value] | None
    table: Vector | None

    @classmethod
    def of(cls, label: str, domain: ParameterDomain, default: Value | None, prior: Any) -> Expectation:
        """Check a default and a prior; see ``mipcash.Space.expect``.

        Raises:
            SpaceError: the default is no value of the parameter, or the prior cannot be read.
        """
        if default is not None and (problem := domain.problem(default)):
            raise SpaceError(f"parameter {label!r}: default={default!r} is no value of it: {problem}")
        table = None if prior is None else _table(label, domain, prior)
        return cls(None if default is None else (domain.canonical(default),), table)

    def usual(self, domain: ParameterDomain) -> Value:
        """Return the default value, else the likeliest one, else the middle of a range or ordered list, the first of a list."""
        if self.default is not None:
            return self.default[0]
        if isinstance(domain, Permutation):
            return domain.members
        if isinstance(domain, (Real, Integer)):
            return domain.from_unit(0.5 if self.table is None else float(np.argmax(self.table)) / (NODES - 1))
        middle = (len(domain.values) - 1) // 2 if domain.kind == "ordinal" else 0
        return domain.values[middle if self.table is None else int(np.argmax(self.table))]

    def described(self) -> str:
        """Return what is expected, as an addition to the description of the parameter."""
        default = "" if self.default is None else f", default {self.default[0]!r}"
        return default + ("" if self.table is None else ", with a prior")

    def log_weight(self, units: Vector) -> Vector:
        """Return log pi at unit values of a real or integer: any shape -> the same shape."""
        assert self.table is not None
        return np.asarray(np.interp(units, np.linspace(0.0, 1.0, NODES), self.table))

    def slope(self, unit: float) -> float:
        """Return the derivative of log pi at a unit value; between nodes it is constant."""
        assert self.table is not None
        node = min(NODES - 2, max(0, int(unit * (NODES - 1))))
        return float((self.table[node + 1] - self.table[node]) * (NODES - 1))


NOTHING = Expectation(None, None)


def _table(label: str, domain: ParameterDomain, prior: Any) -> Vector:
    if isinstance(domain, Permutation):
        raise SpaceError(f"parameter {label!r} is an order, for which there are no priors; leave prior= out")
    found = _listed(label, domain, prior) if isinstance(prior, Mapping) else _density(label, domain, prior)
    if not np.any(found > -np.inf):
        raise SpaceError(f"parameter {label!r}: prior= gives weight to no value of it ({domain})")
    found = np.maximum(found, found.max() + LEAST)
    scaled: Vector = found - found.max()
    return np.asarray(scaled - math.log(float(np.mean(np.exp(scaled)))))


def _listed(label: str, domain: Real | Integer | Any, prior: Mapping[Any, Any]) -> Vector:
    """Return the logarithms of weights by value; for a range in steps they are interpolated between its values."""
    values = getattr(domain, "values", None)
    if values is None:
        raise SpaceError(
            f"parameter {label!r} has no list of values to weight; give prior= a distribution, such as scipy.stats.norm(0.3, 0.1)"
        )
    if isinstance(domain, (Real, Integer)) and len(values) > NODES:
        raise SpaceError(
            f"parameter {label!r} has {len(values):,} values, and prior= weights at most {NODES} one by one; give a distribution, "
            "such as scipy.stats.norm(0.3, 0.1)"
        )
    weights = np.zeros(len(values))
    for value, weight in prior.items():
        level = domain.level(value)
        if level is None:
            raise SpaceError(f"parameter {label!r}: prior= weights {value!r}, and its values are {short_list(values)}")
        if not is_number(weight) or not 0.0 <= float(weight) < np.inf:
            raise SpaceError(
                f"parameter {label!r}: a weight is a number, at least 0; prior= gives {value!r} {weight!r}"
            )
        weights[level] = float(weight)
    with np.errstate(divide="ignore"):
        logs = np.log(weights)
    if not isinstance(domain, (Real, Integer)):
        return logs
    # a list with few weights may have values between nodes: the nearest node of each value takes its weight
    at = np.array([domain.to_unit(v) for v in values])
    nearest = np.argmin(np.abs(np.linspace(0.0, 1.0, NODES)[:, None] - at[None]), axis=1)
    return np.asarray(logs[nearest])


def _density(label: str, domain: Real | Integer | Any, prior: Any) -> Vector:
    """Return the logarithm of the density, or probabilities, of a distribution with ``logpdf`` or ``logpmf``."""
    log, whole = getattr(prior, "logpdf", None), getattr(prior, "logpmf", None)
    numeric = isinstance(domain, (Real, Integer)) or getattr(domain, "numeric", False)
    if (log is None and whole is None) or not numeric:
        kinds = "a dict of weights, {value: weight}" + (
            ", or a distribution such as scipy.stats.norm(0.3, 0.1)" if numeric else ""
        )
        raise SpaceError(f"parameter {label!r}: prior= is {kinds}; got {type(prior).__name__} {prior!r:.60}")
    if not isinstance(domain, (Real, Integer)):
        return _evaluated(label, log or whole, np.array(domain.values, dtype=float))
    u = np.linspace(0.0, 1.0, NODES)
    low, high = float(domain.low), float(domain.high)
    x = low * (high / low) ** u if domain.log else low + u * (high - low)
    x[0], x[-1] = low, high  # exact, because a distribution may end there
    found = _evaluated(label, whole, np.round(x)) if log is None else _evaluated(label, log, x)
    cdf = getattr(prior, "cdf", None)
    share = 1.0 if cdf is None else float(cdf(high) - cdf(low - (log is None)))
    if share < OUTSIDE and np.ptp(found) > STRONG:
        warn(
            f"parameter {label!r}: {share:.1%} of its prior lies in its range [{low:g}, {high:g}], and draws the search to an "
            "end of it; widen the range, or correct prior="
        )
    return found + np.log(x) if domain.log else found  # dx/du is x on the log scale, up to a factor


def _evaluated(label: str, log: Any, x: Vector) -> Vector:
    try:
        found = np.asarray(log(x), dtype=float)
        assert found.shape == x.shape
    except Exception as error:  # an object of the user
        raise SpaceError(
            f"parameter {label!r}: the distribution of prior= cannot be evaluated at its values ({error})"
        ) from error
    return np.where(np.isnan(found), -np.inf, np.minimum(found, 1e3))
