"""Covariances of level effects, with the length-scale of ordered groups as a parameter, and distances of levels
(docs/model.md, 2.1 and 2.4).

Notation
    L       levels of a group;   p (L,) their places on [0, 1];   H = I - 11'/L
    k = E / mean diag(E),   E = H K H;   K = I for categories, K = exp(-(p_l - p_m)^2 / (2 lo^2)) + 1e-3 I for ordered groups

A conditional group also carries the effect of being active at all (+ ACTIVE), and the row of its off column is 0: what is
inactive contributes nothing.

    d (size, size)    squared distance of two levels: 1 between categories; (p_l - p_m)^2 between places of an ordered group;
                      off is at distance 1 from the middle, at a right angle
"""

from __future__ import annotations

import numpy as np

from mipcash.program.forms import Vector
from mipcash.program.program import Group

ACTIVE = 0.25
"""Prior variance of "is active" beside the level effects, whose mean variance is 1."""
NUGGET = 1e-3
ORDINAL_LENGTH = 0.4
"""Median of the prior of lo."""


def has_length(group: Group) -> bool:
    """Whether the length-scale lo means anything for a group: ordered, with at least three levels."""
    return group.ordered and group.size - int(group.conditional) >= 3


def level_kernel(group: Group, length: float = ORDINAL_LENGTH) -> tuple[Vector, Vector]:
    """k of a group and its derivative with respect to log lo, both of shape (size, size), off row and column 0."""
    n_levels = group.size - int(group.conditional)
    kernel, slope = np.zeros((group.size, group.size)), np.zeros((group.size, group.size))
    if n_levels == 1:
        # one level: only its being active can matter
        kernel[0, 0] = float(group.conditional)
        return kernel, slope
    centre = np.eye(n_levels) - 1.0 / n_levels
    if has_length(group):
        place = np.arange(n_levels) / (n_levels - 1)
        squares = (place[:, None] - place) ** 2 / length**2
        plain = np.exp(-0.5 * squares)
        effect = _centred(plain) + NUGGET * centre
        effect_slope = _centred(plain * squares)
        mean, mean_slope = effect.trace() / n_levels, effect_slope.trace() / n_levels
        slope[:n_levels, :n_levels] = effect_slope / mean - effect * (mean_slope / mean**2)
    else:
        effect, mean = centre, centre[0, 0]
    kernel[:n_levels, :n_levels] = effect / mean + (ACTIVE if group.conditional else 0.0)
    return kernel, slope


def _centred(k: Vector) -> Vector:
    """H k H of a symmetric k (L, L)."""
    means = k.sum(axis=0) / len(k)
    return np.asarray(k - means - means[:, None] + means.sum() / len(k))


def factor_of(kernel: Vector) -> Vector:
    """C with C C' = kernel, shape (size, rank); rows of zeros stay zero."""
    values, vectors = np.linalg.eigh(kernel)
    keep = values > 1e-9
    factor: Vector = vectors[:, keep] * np.sqrt(values[keep])
    factor[~np.any(kernel != 0.0, axis=1)] = 0.0
    return factor


def level_distance(group: Group) -> Vector:
    """d of a group, shape (size, size), off included."""
    n_levels = group.size - int(group.conditional)
    if group.ordered:
        place = np.linspace(0.0, 1.0, n_levels) if n_levels > 1 else np.full(1, 0.5)
        distance = np.full((group.size, group.size), 1.0)
        distance[:n_levels, :n_levels] = (place[:, None] - place) ** 2
        if group.conditional:
            distance[:n_levels, -1] = distance[-1, :n_levels] = 1.0 + (place - 0.5) ** 2
        np.fill_diagonal(distance, 0.0)
        return distance
    return np.asarray(1.0 - np.eye(group.size))
