"""Sums over pairs of variables, and their contributions to the gradient of the evidence.

Notation
    A_v (n,)        terms of the V variables, groups first, at n pairs of observations;   E (V, V) pairs, D the groups
    A_g = a_g D_g   of a group, with D_g (n,) the covariances of its levels, which do not change while length-scales are held
    pairs = sum_E A_v A_w,   discrete = sum_{E_D} A_g A_h
    T_v = sum_w E_vw A_w,    T^D_g = sum_h E_gh A_h
    slope_v = W (c1 + c2 T_v) + [v in D] WP (cm + cq T^D_v)      what A_v is multiplied by in tr(W dK), elementwise

If every pair is in E, T_v = S - A_v with S the sum of all A_v, so two vectors (n,) suffice for all groups, and two for all numbers:
slope_v = M - A_v N, with M = W (c1 + c2 S) + [v in D] WP (cm + cq S_D) and N = c2 W + [v in D] cq WP. The terms of groups are not
formed in this case: all sums over them are products of D and of its squares with vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from mipcash.program.forms import Vector
from mipcash.surrogates.structured.number_pairs import NumberTerms


@dataclass(frozen=True)
class Grams:
    """Covariances of levels at the pairs.

    Attributes:
        values: D, shape (G, n).
    """

    values: Vector

    @cached_property
    def squares(self) -> Vector:
        """D_g^2, shape (G, n)."""
        return self.values**2


class PairSums(Protocol):
    """Sums over one set of terms (see the module's notation)."""

    total: Vector
    extra: Vector
    pairs: Vector
    discrete: Vector

    def weigh(self, w: Vector, weighted: Vector, factors: tuple[float, float, float, float]) -> None:
        """Set W and WP (n,) and (c1, c2, cm, cq); call it before the methods below."""

    def slope(self, g: int) -> Vector:
        """Return slope_g of a group: (n,)."""

    def groups(self) -> Vector:
        """Return the sum of slope_g A_g for every group: (G,)."""

    def numbers(self) -> tuple[Vector, Vector]:
        """Return the sums of slope_j A_j and of slope_j A_j (u_j - u'_j)^2 for every number: (J,), (J,)."""


class Complete:
    """Sums if every pair is in E.

    Args:
        a: relevances of the groups, shape (G,).
        grams: covariances of their levels.
        numbers: terms of the numbers.
    """

    def __init__(self, a: Vector, grams: Grams, numbers: NumberTerms) -> None:
        self._a, self._grams, self._numbers = a, grams, numbers
        self.total = a @ grams.values
        groups = a**2 @ grams.squares
        self.extra, squares = numbers.sums()
        self.discrete = 0.5 * (self.total**2 - groups)
        self.pairs = 0.5 * ((self.total + self.extra) ** 2 - groups - squares)

    def weigh(self, w: Vector, weighted: Vector, factors: tuple[float, float, float, float]) -> None:
        c1, c2, cm, cq = factors
        self._first = w * (c1 + c2 * (self.total + self.extra))
        self._second = c2 * w
        self._group_first = self._first + weighted * (cm + cq * self.total)
        self._group_second = self._second + cq * weighted

    def slope(self, g: int) -> Vector:
        return np.asarray(self._group_first - self._a[g] * self._grams.values[g] * self._group_second)

    def groups(self) -> Vector:
        first = self._grams.values @ self._group_first
        return np.asarray(self._a * (first - self._a * (self._grams.squares @ self._group_second)))

    def numbers(self) -> tuple[Vector, Vector]:
        return self._numbers.weighed(self._first, self._second)


class Graph:
    """Sums if only some pairs are in E.

    Args:
        terms: shape (V, n).
        n_groups: number of groups, whose terms come first.
        edges: E, shape (V, V).
        squares: (u_j - u'_j)^2, shape (J, n).
    """

    def __init__(self, terms: Vector, n_groups: int, edges: Vector, squares: Vector) -> None:
        self._terms, self._n, self._squares = terms, n_groups, squares
        self._inner = edges @ terms
        self._inside = edges[:n_groups, :n_groups] @ terms[:n_groups]
        self.total = terms[:n_groups].sum(axis=0)
        self.extra = terms[n_groups:].sum(axis=0)
        self.pairs = 0.5 * np.sum(terms * self._inner, axis=0)
        self.discrete = 0.5 * np.sum(terms[:n_groups] * self._inside, axis=0)

    def weigh(self, w: Vector, weighted: Vector, factors: tuple[float, float, float, float]) -> None:
        self._w, self._weighted, self._factors = w, weighted, factors

    def slope(self, g: int) -> Vector:
        _, _, cm, cq = self._factors
        return np.asarray(self._plain(g) + self._weighted * (cm + cq * self._inside[g]))

    def groups(self) -> Vector:
        return np.array([self.slope(g) @ self._terms[g] for g in range(self._n)])

    def numbers(self) -> tuple[Vector, Vector]:
        found = np.zeros((2, len(self._terms) - self._n))
        for j, squares in enumerate(self._squares):
            entry = self._plain(self._n + j) * self._terms[self._n + j]
            found[:, j] = entry.sum(), entry @ squares
        return found[0], found[1]

    def _plain(self, v: int) -> Vector:
        c1, c2, _, _ = self._factors
        return np.asarray(self._w * (c1 + c2 * self._inner[v]))
