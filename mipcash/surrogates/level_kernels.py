"""Covariances of level effects and distances of levels (docs/model.md, 2.1 and 2.4).

Notation
    L       levels of a group;   p (L,) their places on [0, 1];   H = I - 11'/L
    k = E / mean diag(E),   E = H K H;   K = I for categories, K = exp(-(p_l - p_m)^2 / (2 lo^2)) + 1e-3 I for ordered groups

For a conditional group, ACTIVE is added to k between levels: the variance of the effect of being active at all. The row of its off
level is 0, since an inactive group contributes nothing.

    d (size, size)    squared distance of two levels: 1 between categories; (p_l - p_m)^2 between levels of an ordered group;
                      (p_l - 1/2)^2 + 1 between an ordered level and off, 1 between a category and off

A matrix over more than DENSE levels is never formed. K depends on |l - m| alone, so its means are sums of one row, and single
entries of k, of its derivative and of d are evaluated on demand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from mipcash.program.forms import Booleans, Indices, Vector
from mipcash.program.program import Group

ACTIVE = 0.25
"""Prior variance of "is active" beside the level effects, whose mean variance is 1."""
NUGGET = 1e-3
ORDINAL_LENGTH = 0.4
"""Median of the prior of lo."""
DENSE = 500
"""Largest number of levels for which a group's matrices are formed."""


def has_length(group: Group) -> bool:
    """Return True if the group has a length-scale lo: it is ordered and has at least three levels."""
    return group.ordered and group.n_levels >= 3


def factor_of(kernel: Vector) -> Vector:
    """Return C with C C' = kernel, shape (size, rank). The zero rows of the kernel, at its end, stay zero.

    C is a Cholesky factor: eigenvectors of equal eigenvalues, as of categories, would differ from one processor to another.
    """
    n = int(np.count_nonzero(np.diag(kernel)))
    # the effects of levels add up to 0, unless the group is conditional
    rank = max(0, n - int(np.sum(kernel) <= 1e-9 * np.trace(kernel)))
    factor = np.zeros((len(kernel), rank))
    if rank:
        lower = np.linalg.cholesky(kernel[:rank, :rank])
        factor[:n] = solve_triangular(lower, kernel[:rank, :n], lower=True).T
    return factor


@dataclass(frozen=True)
class LevelMatrix(ABC):
    """A symmetric matrix over the levels of one group, entry by entry.

    Attributes:
        group: the group.
    """

    group: Group

    @abstractmethod
    def _entries(self, rows: Indices, cols: Indices) -> Vector:
        """Compute the entries between levels, elementwise; the shapes of ``rows`` and ``cols`` broadcast."""

    @cached_property
    def matrix(self) -> Vector:
        """The whole matrix, shape (size, size)."""
        each = np.arange(self.group.size)
        return self._entries(each[:, None], each)

    def at(self, rows: Indices, cols: Indices) -> Vector:
        """Return the entries between levels, elementwise."""
        return np.asarray(self.matrix[rows, cols]) if self.small else self._entries(rows, cols)

    @property
    def small(self) -> bool:
        """True if the whole matrix is formed."""
        return self.group.size <= DENSE

    def columns(self, levels: Indices) -> Vector:
        """Return the columns of some levels: (n,) -> (size, n)."""
        if self.small:
            return self.matrix.take(levels, axis=1)
        return self.at(np.arange(self.group.size)[:, None], levels)


@dataclass(frozen=True)
class LevelKernel(LevelMatrix):
    """k of one group (see the module's notation).

    Attributes:
        length: lo; ignored if the group has none (``has_length``).
    """

    length: float = ORDINAL_LENGTH

    @cached_property
    def slopes(self) -> Vector:
        """Derivative of k with respect to log lo, (size, size). The group must have a length-scale."""
        each = np.arange(self.group.size)
        return self._slopes(each[:, None], each)

    def slope_at(self, rows: Indices, cols: Indices) -> Vector:
        """Return the derivative of k with respect to log lo between levels, elementwise. The group must have a length-scale."""
        return np.asarray(self.slopes[rows, cols]) if self.small else self._slopes(rows, cols)

    @cached_property
    def diagonal(self) -> Vector:
        """Prior variance k(l, l) of every level, shape (size,)."""
        each = np.arange(self.group.size)
        return self.at(each, each)

    def _entries(self, rows: Indices, cols: Indices) -> Vector:
        n, conditional = self.group.n_levels, self.group.conditional
        if n == 1:  # only being active can have an effect
            return np.where(self._active(rows, cols), float(conditional), 0.0)
        if has_length(self.group):
            effect = self._centred(0, rows, cols) / self._mean(0)
        else:
            effect = (np.equal(rows, cols) - 1.0 / n) / (1.0 - 1.0 / n)
        return np.where(self._active(rows, cols), effect + (ACTIVE if conditional else 0.0), 0.0)

    def _slopes(self, rows: Indices, cols: Indices) -> Vector:
        mean, mean_slope = self._mean(0), self._mean(1)
        slope = self._centred(1, rows, cols) / mean - self._centred(0, rows, cols) * (mean_slope / mean**2)
        return np.where(self._active(rows, cols), slope, 0.0)

    def _active(self, rows: Indices, cols: Indices) -> Booleans:
        return np.asarray(np.less(rows, self.group.n_levels) & np.less(cols, self.group.n_levels))

    @cached_property
    def _by_distance(self) -> tuple[tuple[Vector, Vector], tuple[Vector, Vector]]:
        """K without its nugget by |l - m|, (L,), and its row means, (L,); then the derivatives of both with respect to log lo."""
        n = self.group.n_levels
        squares = (np.arange(n) / (n - 1) / self.length) ** 2
        plain = np.exp(-0.5 * squares)
        sums = np.cumsum(plain), np.cumsum(plain * squares)
        means = [(s + s[::-1] - s[0]) / n for s in sums]
        return (plain, means[0]), (plain * squares, means[1])

    def _mean(self, which: int) -> float:
        """Return the mean of diag(E) if ``which`` is 0, or its derivative with respect to log lo if it is 1."""
        row, means = self._by_distance[which]
        return float(row[0] - means.mean()) + (0.0 if which else NUGGET * (1.0 - 1.0 / self.group.n_levels))

    def _centred(self, which: int, rows: Indices, cols: Indices) -> Vector:
        """Return E between levels if ``which`` is 0, or its derivative with respect to log lo if it is 1."""
        n, (row, means) = self.group.n_levels, self._by_distance[which]
        left, right = np.minimum(rows, n - 1), np.minimum(cols, n - 1)
        centred = row[np.abs(left - right)] - means[left] - means[right] + means.mean()
        return np.asarray(centred if which else centred + NUGGET * (np.equal(rows, cols) - 1.0 / n))


@dataclass(frozen=True)
class LevelDistance(LevelMatrix):
    """d of one group (see the module's notation)."""

    @cached_property
    def _places(self) -> Vector:
        """Place of each level on [0, 1], and of off: (size,)."""
        n = self.group.n_levels
        return np.append(np.linspace(0.0, 1.0, n) if n > 1 else [0.5], [0.5] * self.group.conditional)

    def _entries(self, rows: Indices, cols: Indices) -> Vector:
        same, n = np.equal(rows, cols), self.group.n_levels
        if not self.group.ordered:
            return np.where(same, 0.0, 1.0)
        # between a level and off: (p_l - 1/2)^2 + 1
        off = np.greater_equal(rows, n) | np.greater_equal(cols, n)
        return np.where(same, 0.0, (self._places[rows] - self._places[cols]) ** 2 + off)
