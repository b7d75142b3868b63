"""Kernel terms of the numerical parameters at pairs of observations, computed only where the parameter is active at both points.

Notation
    J numbers (numerical parameters), n pairs of observations
    A_j (n,)    b_j exp(-(u_j - u'_j)^2 / (2 m_j^2)) where number j is on at both points, else 0
    K of the numbers are on at every point; the N entries of the remaining numbers are stored in one list
"""

from __future__ import annotations

import numpy as np

from mipcash.program.forms import Indices, Vector


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

    def __init__(self, on: Vector, rows: Indices, cols: Indices, squares: Vector, conditions: Indices) -> None:
        """Collect the data of n pairs.

        Args:
            on: activities of t points, (t, J).
            rows, cols: the pairs, (n,) each.
            squares: (u_j - u'_j)^2 at the pairs, (J, n).
            conditions: how many each number has, (J,).
        """
        active = np.ascontiguousarray(on.T > 0)
        everywhere = active.all(axis=1)
        self.shape, self.conditions = (len(active), len(rows)), conditions
        self.always, others = np.flatnonzero(everywhere), np.flatnonzero(~everywhere)
        part = active[others]
        owner, self.at = np.nonzero(part[:, rows] & part[:, cols])
        self.owner = others[owner]
        self.throughout, self.squares = squares[self.always], squares[self.owner, self.at]
