"""Kernel terms of the numerical parameters at pairs of observations, computed only where the parameter is active at both points.

Notation
    J numbers (numerical parameters), n pairs of observations
    A_j (n,)    b_j exp(-(u_j - u'_j)^2 / (2 m_j^2)) where number j is on at both points, else 0
    K of the numbers are on at every point; the N entries of the remaining numbers are stored in one list
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipcash.program.forms import Indices, Vector
from mipcash.surrogates.structured.kernel import number_product


@dataclass(frozen=True)
class NumberPairs:
    """Data of the terms that do not depend on hyperparameters.

    Attributes:
        shape: (J, n).
        conditions: how many each number has, shape (J,).
        always: the numbers that are on at every point, shape (K,).
        throughout: their (u_j - u'_j)^2, shape (K, n).
        owner, at: number and pair of each listed entry of the remaining numbers, shape (N,).
        squares: (u_j - u'_j)^2 of each listed entry, shape (N,).
    """

    shape: tuple[int, int]
    conditions: Indices
    always: Indices
    throughout: Vector
    owner: Indices
    at: Indices
    squares: Vector

    @classmethod
    def of(cls, on: Vector, rows: Indices, cols: Indices, squares: Vector, conditions: Indices) -> NumberPairs:
        """Return the data of n pairs.

        Args:
            on: activities of t points, (t, J).
            rows, cols: the pairs, (n,) each.
            squares: (u_j - u'_j)^2 at the pairs, (J, n).
            conditions: how many each number has, (J,).
        """
        active = np.ascontiguousarray(on.T > 0)
        everywhere = active.all(axis=1)
        always, others = np.flatnonzero(everywhere), np.flatnonzero(~everywhere)
        part = active[others]
        owner, at = np.nonzero(part[:, rows] & part[:, cols])
        owner = others[owner]
        return cls((len(active), len(rows)), conditions, always, squares[always], owner, at, squares[owner, at])

    def terms(self, b: Vector, m: Vector) -> NumberTerms:
        """Return the terms at relevances b and lengths m, (J,) each."""
        whole = number_product(self.throughout, b[self.always, None], m[self.always, None])
        return NumberTerms(self, whole, number_product(self.squares, b[self.owner], m[self.owner]))


@dataclass(frozen=True)
class NumberTerms:
    """The terms at given hyperparameters.

    Attributes:
        pairs: the data of the terms.
        whole: terms of the numbers that are on at every point, shape (K, n).
        listed: listed entries of the remaining numbers, shape (N,).
    """

    pairs: NumberPairs
    whole: Vector
    listed: Vector

    def sums(self, conditions: int | None = None) -> tuple[Vector, Vector]:
        """Return sum_j A_j and sum_j A_j^2 over all numbers, or over those with so many conditions: (n,), (n,)."""
        pairs, n = self.pairs, self.pairs.shape[1]
        whole, listed, at = self.whole, self.listed, pairs.at
        if conditions is not None:
            kept = pairs.conditions[pairs.owner] == conditions
            whole, listed, at = whole[pairs.conditions[pairs.always] == conditions], listed[kept], at[kept]
        total, squares = whole.sum(axis=0), np.einsum("kn,kn->n", whole, whole)
        if len(at):
            total += np.bincount(at, listed, n)
            squares += np.bincount(at, listed**2, n)
        return total, squares

    def weighed(self, first: Vector, second: Vector) -> tuple[Vector, Vector]:
        """Return sum slope_j A_j and sum slope_j A_j (u_j - u'_j)^2 over the pairs: (J,), (J,).

        slope_j = first[c] - A_j second[c], with c the conditions of number j, or 0 if there is only one row: (1, n) or (3, n).
        """
        pairs, count = self.pairs, self.pairs.shape[0]
        relevance, lengths = np.zeros(count), np.zeros(count)
        kind = pairs.conditions if len(first) > 1 else np.zeros(count, dtype=np.int64)
        if len(pairs.at):
            row = kind[pairs.owner]
            entry = self.listed * (first[row, pairs.at] - self.listed * second[row, pairs.at])
            relevance += np.bincount(pairs.owner, entry, count)
            lengths += np.bincount(pairs.owner, entry * pairs.squares, count)
        rows = kind[pairs.always] if len(first) > 1 else slice(None)
        weights = self.whole * (first[rows] - self.whole * second[rows])
        relevance[pairs.always] = weights.sum(axis=1)
        lengths[pairs.always] = np.einsum("kn,kn->k", weights, pairs.throughout)
        return relevance, lengths
