"""The rules of a space as matrix rows, so that all are evaluated at given values at once.

Notation
    v           the variables in rules, in the order in which the rules name them

    A (m, V)    coefficients of the linear rules. Terms are in the order of their rule, so sums equal those of plain Python

    W           coefficients of their conditions, ``constant + W v``, each a row of its own

Rules with products, and rules over variables that are neither known nor free, are evaluated in plain Python instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from mipcash.modelling.auxiliary import ids_of
from mipcash.modelling.quadratic import Quadratic
from mipcash.modelling.rules import Rule
from mipcash.program.forms import Indices, Vector

UNKNOWN, KNOWN, FREE = 0, 1, 2
"""State of a variable."""


@dataclass(frozen=True)
class LinearPart:
    """The linear rules on free numerical parameters ("numbers"), known values substituted: r rules over k numbers.

    Attributes:
        rules: indices of the rules, shape (r,), ascending.
        linear: shape (r, k).
        constant: sum of the substituted terms, shape (r,).
        substituted: sum of the absolute values of those terms, shape (r,).
        terms: number of free numbers in each rule, shape (r,).
    """

    rules: Indices
    linear: Vector
    constant: Vector
    substituted: Vector
    terms: Indices


@dataclass(frozen=True, eq=False)
class RuleRows:
    """All rules of a space (see the module's notation)."""

    rules: tuple[Rule, ...]

    @cached_property
    def _linear(self) -> Indices:
        """Indices of the rules without products."""
        return np.array([r for r, rule in enumerate(self.rules) if not rule.body.products], dtype=np.int64)

    @cached_property
    def _place(self) -> dict[int, int]:
        """Id of a variable of a linear rule or its conditions -> its column."""
        place: dict[int, int] = {}
        for r in self._linear.tolist():
            for body in (self.rules[r].body, *self.rules[r].when):
                for i in body.linear:
                    place.setdefault(i, len(place))
        return place

    @cached_property
    def _bodies(self) -> sparse.csr_array:
        return self._matrix([self.rules[r].body for r in self._linear.tolist()])

    @cached_property
    def _sizes(self) -> sparse.csr_array:
        return _with_data(self._bodies, np.abs(self._bodies.data))

    @cached_property
    def _conditions(self) -> tuple[sparse.csr_array, Vector, Indices]:
        """W, the constants, and the row of A that each condition belongs to."""
        listed = [(k, w) for k, r in enumerate(self._linear.tolist()) for w in self.rules[r].when]
        constants = np.array([w.constant for _, w in listed], dtype=float)
        return self._matrix([w for _, w in listed]), constants, np.array([k for k, _ in listed], dtype=np.int64)

    @cached_property
    def lower(self) -> Vector:
        """Lower bounds of all rules."""
        return np.array([rule.lower for rule in self.rules], dtype=float)

    @cached_property
    def upper(self) -> Vector:
        """Upper bounds of all rules."""
        return np.array([rule.upper for rule in self.rules], dtype=float)

    @cached_property
    def slack(self) -> Vector:
        """Tolerance of each rule."""
        return np.array([rule.slack for rule in self.rules], dtype=float)

    @cached_property
    def scale(self) -> Vector:
        """Absolute value of the constant in each rule's bounds."""
        return np.array([rule.scale for rule in self.rules], dtype=float)

    @cached_property
    def _plain(self) -> tuple[tuple[int, Rule], ...]:
        """The rules that are not matrix rows, with their indices."""
        rows = set(self._linear.tolist())
        return tuple((r, rule) for r, rule in enumerate(self.rules) if r not in rows)

    def split(self, known: Mapping[int, float], free: Mapping[int, int]) -> tuple[LinearPart, list[tuple[int, Rule]]]:
        """Return the linear rules on free numbers with known values substituted, and the rules that need plain Python.

        Args:
            known: id of a variable -> value.
            free: id of a free number -> its position.
        """
        place = self._place
        values, state = np.zeros(len(place)), np.full(len(place), UNKNOWN)
        column = np.zeros(len(free), dtype=np.int64)
        inside = np.zeros(len(free), dtype=bool)
        for i, c in place.items():
            if i in free:
                state[c] = FREE
                column[free[i]], inside[free[i]] = c, True
            elif i in known:
                state[c], values[c] = KNOWN, known[i]
        unknown = self._occurs @ (state == UNKNOWN).astype(float) > 0
        conditions, constants, of = self._conditions
        holds = constants + conditions @ values > 0.5
        open_when = _with_data(conditions, np.ones(conditions.nnz)) @ (state != KNOWN).astype(float) > 0
        applies = np.ones(len(self._linear), dtype=bool)
        applies[of[~holds & ~open_when]] = False
        unknown[of[open_when]] = True
        counts = np.zeros(len(self._linear), dtype=np.int64)
        linear = np.zeros((len(self._linear), len(free)))
        if np.any(inside):
            at = self._by_column[:, column[inside]]
            linear[:, inside] = at.toarray()
            counts = np.count_nonzero(linear, axis=1)
        chosen = applies & ~unknown & (counts > 0)
        part = LinearPart(
            self._linear[chosen],
            linear[chosen],
            (self._bodies @ values)[chosen],
            (self._sizes @ np.abs(values))[chosen],
            counts[chosen],
        )
        left = [(int(r), self.rules[r]) for r in self._linear[applies & unknown].tolist()]
        return part, sorted([*self._plain, *left], key=lambda each: each[0])

    @cached_property
    def _occurs(self) -> sparse.csr_array:
        """Matrix with 1 where a variable occurs in a rule."""
        return _with_data(self._bodies, np.ones(self._bodies.nnz))

    @cached_property
    def _by_column(self) -> sparse.csc_array:
        return sparse.csc_array(self._bodies)

    def _matrix(self, bodies: Sequence[Quadratic]) -> sparse.csr_array:
        """Return a matrix with one row per body, its coefficients in the body's own order."""
        place, shape = self._place, (len(bodies), len(self._place))
        columns = np.array([place[i] for body in bodies for i in body.linear], dtype=np.int64)
        values = np.array([c for body in bodies for c in body.linear.values()], dtype=float)
        starts = np.cumsum([0, *(len(body.linear) for body in bodies)])
        return sparse.csr_array((values, columns, starts), shape=shape)


def _with_data(matrix: sparse.csr_array, data: Vector) -> sparse.csr_array:
    """Return a matrix of the same sparsity pattern with other values, in the same order."""
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def unknown_of(rules: Sequence[tuple[int, Rule]], known: Mapping[int, float], free: Mapping[int, int]) -> set[int]:
    """Return the ids of variables in the rules that are neither known nor free."""
    found: set[int] = set()
    for _, rule in rules:
        found |= ids_of(rule) - known.keys() - free.keys()
    return found
