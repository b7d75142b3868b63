"""Sums over pairs of variables, and their contributions to the gradient of the evidence.

Notation
    A_v (n,)        terms of the V variables, groups first, at n pairs of observations;   E (V, V) pairs, D the groups
    A_g = a_g D_g   of a group, with D_g (n,) the covariances of its levels, which do not change while length-scales are held
    S, S_D          sums of A_v over all variables, and over the groups
    F, O, T         sums over the numbers with no, one and two conditions;   E has every pair with at most two conditions
                    together, a group counting as one
    pairs = sum_E A_v A_w,   discrete = sum_{E_D} A_g A_h
    T_v = sum_w E_vw A_w,    T^D_g = sum_h E_gh A_h
    slope_v = W (c1 + c2 T_v) + [v in D] WP (cm + cq T^D_v)      what A_v is multiplied by in tr(W dK), elementwise

T_v is S - A_v for a number without conditions, S - T - A_v for a group and a number with one, and F for a number with two. So a few
vectors (n,) suffice for all variables: slope_v = M - A_v N, with M = W (c1 + c2 S) and N = c2 W for the first kind, and so on. The
terms of groups are not formed: all sums over them are products of D and of its squares with vectors.
"""

from __future__ import annotations

import numpy as np

from mipcash.program.forms import Vector
from mipcash.surrogates.structured.kernel import Kernel, number_product
from mipcash.surrogates.structured.number_pairs import NumberPairs


class PairSums:
    """Sums over one set of terms (see the module's notation).

    Args:
        kernel: hyperparameters of the terms.
        grams: covariances of the groups' levels at the pairs, D, and their squares: (G, n) each.
        pairs: the pairs in which numbers are on at both points.
    """

    def __init__(self, kernel: Kernel, grams: tuple[Vector, Vector], pairs: NumberPairs) -> None:
        a, b, m = kernel.a, kernel.b, kernel.m
        self._a, (self._grams, self._squares), self._pairs = a, grams, pairs
        self._whole = number_product(pairs.throughout, b[pairs.always, None], m[pairs.always, None])
        """Terms of the numbers that are on at every point, shape (K, n)."""
        self._listed = number_product(pairs.squares, b[pairs.owner], m[pairs.owner])
        """Listed entries of the remaining numbers, shape (N,)."""
        self.total = a @ self._grams
        groups = a**2 @ self._squares
        self.extra, squares = self._sums()
        self.discrete = 0.5 * (self.total**2 - groups)
        self.pairs = 0.5 * ((self.total + self.extra) ** 2 - groups - squares)
        self._two = np.any(pairs.conditions == 2)
        if self._two:
            self._free, (two, two_squares) = self._sums(0)[0], self._sums(2)
            self._most = self.total + self.extra - two  # S - T
            self.pairs -= two * (self._most - self._free) + 0.5 * (two**2 - two_squares)

    def weigh(self, w: Vector, weighted: Vector, factors: tuple[float, float, float, float]) -> None:
        """Set W and WP (n,) and (c1, c2, cm, cq); call it before the methods below."""
        c1, c2, cm, cq = factors
        every = w * (c1 + c2 * (self.total + self.extra))
        self._first, self._second = every[None], c2 * w[None]
        if self._two:
            self._first = np.stack([every, w * (c1 + c2 * self._most), w * (c1 + c2 * self._free)])
            self._second = np.stack([c2 * w, c2 * w, np.zeros(len(w))])
        self._group_first = self._first[min(1, len(self._first) - 1)] + weighted * (cm + cq * self.total)
        self._group_second = c2 * w + cq * weighted

    def slope(self, g: int) -> Vector:
        """Return slope_g of a group: (n,)."""
        return np.asarray(self._group_first - self._a[g] * self._grams[g] * self._group_second)

    def groups(self) -> Vector:
        """Return the sum of slope_g A_g for every group: (G,)."""
        first = self._grams @ self._group_first
        return np.asarray(self._a * (first - self._a * (self._squares @ self._group_second)))

    def numbers(self) -> tuple[Vector, Vector]:
        """Return the sums of slope_j A_j and of slope_j A_j (u_j - u'_j)^2 for every number: (J,), (J,)."""
        pairs, count, first, second = self._pairs, self._pairs.shape[0], self._first, self._second
        relevance, lengths = np.zeros(count), np.zeros(count)
        kind = pairs.conditions if self._two else np.zeros(count, dtype=np.int64)
        if len(pairs.at):
            row = kind[pairs.owner]
            entry = self._listed * (first[row, pairs.at] - self._listed * second[row, pairs.at])
            relevance += np.bincount(pairs.owner, entry, count)
            lengths += np.bincount(pairs.owner, entry * pairs.squares, count)
        rows = kind[pairs.always] if self._two else slice(None)
        weights = self._whole * (first[rows] - self._whole * second[rows])
        relevance[pairs.always] = weights.sum(axis=1)
        lengths[pairs.always] = np.einsum("kn,kn->k", weights, pairs.throughout)
        return relevance, lengths

    def _sums(self, conditions: int | None = None) -> tuple[Vector, Vector]:
        """Return sum_j A_j and sum_j A_j^2 over all numbers, or over those with so many conditions: (n,), (n,)."""
        pairs, n = self._pairs, self._pairs.shape[1]
        whole, listed, at = self._whole, self._listed, pairs.at
        if conditions is not None:
            kept = pairs.conditions[pairs.owner] == conditions
            whole, listed, at = whole[pairs.conditions[pairs.always] == conditions], listed[kept], at[kept]
        total, squares = whole.sum(axis=0), np.einsum("kn,kn->n", whole, whole)
        if len(at):
            total += np.bincount(at, listed, n)
            squares += np.bincount(at, listed**2, n)
        return total, squares
