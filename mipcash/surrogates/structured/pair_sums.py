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

from dataclasses import dataclass
from functools import cached_property

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


class PairSums:
    """Sums over one set of terms (see the module's notation).

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
        self._two = np.any(numbers.pairs.conditions == 2)
        if self._two:
            self._free, (two, two_squares) = numbers.sums(0)[0], numbers.sums(2)
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
        return np.asarray(self._group_first - self._a[g] * self._grams.values[g] * self._group_second)

    def groups(self) -> Vector:
        """Return the sum of slope_g A_g for every group: (G,)."""
        first = self._grams.values @ self._group_first
        return np.asarray(self._a * (first - self._a * (self._grams.squares @ self._group_second)))

    def numbers(self) -> tuple[Vector, Vector]:
        """Return the sums of slope_j A_j and of slope_j A_j (u_j - u'_j)^2 for every number: (J,), (J,)."""
        return self._numbers.weighed(self._first, self._second)
