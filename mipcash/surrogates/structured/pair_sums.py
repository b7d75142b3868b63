"""Sums over pairs of variables, and what they contribute to the gradient of the evidence.

Notation
    A_v (n,)        terms of the V variables, groups first, at n pairs of observations;   E (V, V) pairs, D the groups
    pairs = sum_E A_v A_w,   discrete = sum_{E_D} A_g A_h
    T_v = sum_w E_vw A_w,    T^D_g = sum_h E_gh A_h
    slope_v = W (c1 + c2 T_v) + [v in D] WP (cm + cq T^D_v)      what A_v is multiplied by in tr(W dK), elementwise

Where every pair is in E, T_v = S - A_v with S the sum of all, so that nothing but two matrices meets each A_v:
slope_v = M - A_v N, with M = W (c1 + c2 S) + [v in D] WP (cm + cq S_D) and N = c2 W + [v in D] cq WP.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from mipcash.program.forms import Vector


class PairSums(Protocol):
    """Sums of one set of terms (see the module's notation)."""

    total: Vector
    extra: Vector
    pairs: Vector
    discrete: Vector

    def weigh(self, w: Vector, weighted: Vector, factors: tuple[float, float, float, float]) -> None:
        """Give W and WP (n,) and (c1, c2, cm, cq) before :meth:`slope` and :meth:`relevance`."""

    def slope(self, v: int) -> Vector:
        """slope_v: (n,)."""

    def relevance(self) -> Vector:
        """sum of slope_v A_v for every v: (V,)."""


class Complete:
    """Every pair is in E.

    Args:
        terms: shape (V, n).
        n_groups: the first ones are groups.
    """

    def __init__(self, terms: Vector, n_groups: int) -> None:
        self._terms, self._n, self._squares = terms, n_groups, terms**2
        self.total = terms[:n_groups].sum(axis=0)
        self.extra = terms[n_groups:].sum(axis=0)
        groups = self._squares[:n_groups].sum(axis=0)
        numbers = self._squares[n_groups:].sum(axis=0)
        self.discrete = 0.5 * (self.total**2 - groups)
        self.pairs = 0.5 * ((self.total + self.extra) ** 2 - groups - numbers)

    def weigh(self, w: Vector, weighted: Vector, factors: tuple[float, float, float, float]) -> None:
        c1, c2, cm, cq = factors
        self._first = w * (c1 + c2 * (self.total + self.extra))
        self._second = c2 * w
        self._group_first = self._first + weighted * (cm + cq * self.total)
        self._group_second = self._second + cq * weighted

    def slope(self, v: int) -> Vector:
        if v < self._n:
            return np.asarray(self._group_first - self._terms[v] * self._group_second)
        return np.asarray(self._first - self._terms[v] * self._second)

    def relevance(self) -> Vector:
        n = self._n
        groups = self._terms[:n] @ self._group_first - self._squares[:n] @ self._group_second
        numbers = self._terms[n:] @ self._first - self._squares[n:] @ self._second
        return np.concatenate([groups, numbers])


class Graph:
    """Some pairs are in E.

    Args:
        terms: shape (V, n).
        n_groups: the first ones are groups.
        edges: E, shape (V, V).
    """

    def __init__(self, terms: Vector, n_groups: int, edges: Vector) -> None:
        self._terms, self._n = terms, n_groups
        self._inner = edges @ terms
        self._inside = edges[:n_groups, :n_groups] @ terms[:n_groups]
        self.total = terms[:n_groups].sum(axis=0)
        self.extra = terms[n_groups:].sum(axis=0)
        self.pairs = 0.5 * np.sum(terms * self._inner, axis=0)
        self.discrete = 0.5 * np.sum(terms[:n_groups] * self._inside, axis=0)

    def weigh(self, w: Vector, weighted: Vector, factors: tuple[float, float, float, float]) -> None:
        self._w, self._weighted, self._factors = w, weighted, factors

    def slope(self, v: int) -> Vector:
        c1, c2, cm, cq = self._factors
        slope = self._w * (c1 + c2 * self._inner[v])
        if v < self._n:
            slope = slope + self._weighted * (cm + cq * self._inside[v])
        return np.asarray(slope)

    def relevance(self) -> Vector:
        return np.array([np.sum(self.slope(v) * term) for v, term in enumerate(self._terms)])
