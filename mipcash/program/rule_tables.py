"""Rules over finitely many states as tables of the joint states that satisfy them.

Notation
    i             a finite variable with d_i states: a one-hot group, an integer column, ...
    P_i (k_i, d_i)  its profiles: the values of the k_i base columns that its state determines
    q             a form over base columns is  constant + sum_i f_i[s_i] + sum_{i < j} F_ij[s_i, s_j]  with
                  f_i = linear P_i + the products within P_i,   F_ij = P_i' (Q + Q')_ij P_j

A table has as many entries as its variables have joint states. It may be at most this large:

    DECIDING      a rule with auxiliary variables; without its table only a solver can decide legality
    JOINED        a rule by which enumeration may join its variables, or which it keeps as a linear row
    POSTED        a rule that a solver of cost functions gets as a table, otherwise as a linear row
    PAIR          a rule over two variables, which that solver gets as a matrix
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mipcash.program.forms import Booleans, Indices, QuadraticForm, Vector
from mipcash.program.program import BaseRow, BinaryProgram

DECIDING = 1 << 23
JOINED = 5_000
POSTED = 20_000
PAIR = 1_000_000


@dataclass(frozen=True)
class RuleTable:
    """The legal joint states of some variables.

    Attributes:
        scope: the variables, ascending.
        legal: one axis per variable.
    """

    scope: tuple[int, ...]
    legal: Booleans


@dataclass(frozen=True)
class Split:
    """A form by variable (see the module's notation): f_i, and F_ij with i < j."""

    constant: float
    unary: dict[int, Vector]
    pairs: dict[tuple[int, int], Vector]

    @property
    def scope(self) -> tuple[int, ...]:
        return tuple(sorted({*self.unary, *(i for pair in self.pairs for i in pair)}))

    def over(self, scope: Sequence[int]) -> Vector:
        """Return its values at all joint states of some variables, including its own; irrelevant axes may have length 1."""
        body = np.full([1] * len(scope), self.constant)
        functions: list[tuple[tuple[int, ...], Vector]] = [((i,), f) for i, f in self.unary.items()]
        for variables, f in [*functions, *self.pairs.items()]:
            shape = [1] * len(scope)
            for i, size in zip(variables, f.shape, strict=True):
                shape[scope.index(i)] = size
            body = body + f.reshape(shape)
        return body


@dataclass(frozen=True)
class States:
    """Finite variables and the base columns that they determine (see the module's notation).

    Attributes:
        columns: of each variable, shape (k_i,).
        profiles: P_i, shape (k_i, d_i).
        constants: base column -> its value, for columns that no variable determines.
    """

    columns: Sequence[Indices]
    profiles: Sequence[Vector]
    constants: Mapping[int, float]

    @classmethod
    def of_levels(cls, program: BinaryProgram, groups: Iterable[int], integers: Iterable[int] = ()) -> States:
        """Return the states of some groups, then of some integer columns, all values listed. Check ``sizes_of`` first."""
        chosen, auxiliaries = [program.groups[g] for g in groups], list(integers)
        return cls(
            [np.arange(g.start, g.stop) for g in chosen] + [np.array([c]) for c in auxiliaries],
            [np.eye(g.size) for g in chosen]
            + [np.arange(program.low[c], program.high[c] + 1)[None] for c in auxiliaries],
            {},
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of states d_i."""
        return tuple(p.shape[1] for p in self.profiles)

    @cached_property
    def _place(self) -> dict[int, tuple[int, int]]:
        """Base column -> its variable, and its row in that variable's profiles."""
        return {c: (i, k) for i, columns in enumerate(self.columns) for k, c in enumerate(columns.tolist())}

    def split(self, form: QuadraticForm) -> Split:
        """Split a form by variable; constant functions are added to the constant."""
        constant, linear = form.constant, form.linear
        products: dict[tuple[int, int], list[tuple[int, int, float]]] = {}
        if self.constants:
            linear = linear.copy()
        for a, b, value in zip(form.rows.tolist(), form.cols.tolist(), form.values.tolist(), strict=True):
            if a in self.constants and b in self.constants:
                constant += value * self.constants[a] * self.constants[b]
            elif a in self.constants:
                linear[b] += value * self.constants[a]
            elif b in self.constants:
                linear[a] += value * self.constants[b]
            else:
                (i, k), (j, l) = sorted((self._place[a], self._place[b]))
                products.setdefault((i, j), []).append((k, l, value))
        constant += sum(float(linear[c]) * value for c, value in self.constants.items())
        unary = {
            i: linear[c] @ p
            for i, (c, p) in enumerate(zip(self.columns, self.profiles, strict=True))
            if linear[c].any()
        }
        pairs: dict[tuple[int, int], Vector] = {}
        for (i, j), terms in products.items():
            left, right = self.profiles[i], self.profiles[j]
            if i == j:
                unary[i] = unary.get(i, 0.0) + sum(v * left[k] * left[l] for k, l, v in terms)
                continue
            weights = np.zeros((len(left), len(right)))
            for k, l, v in terms:
                weights[k, l] += v
            pairs[i, j] = left.T @ weights @ right
        for i in [i for i, f in unary.items() if np.ptp(f) == 0.0]:
            constant += float(unary.pop(i)[0])
        return Split(float(constant), unary, pairs)

    def legal(self, rows: Iterable[BaseRow]) -> Booleans:
        """Return which joint states of all variables satisfy every row, one axis per variable."""
        legal = np.ones(self.sizes, dtype=bool)
        for row in rows:
            legal &= row.holds(self.split(row.form).over(range(len(self.columns))))
        return legal


def sizes_of(program: BinaryProgram, groups: Iterable[int], integers: Iterable[int] = ()) -> list[int]:
    """Return d_i of some groups, then of some integer columns."""
    return [int(program.sizes[g]) for g in groups] + [int(program.high[c] - program.low[c]) + 1 for c in integers]


def entries(sizes: Iterable[int]) -> int:
    """Return the number of entries of a table over variables of these sizes."""
    return math.prod(map(int, sizes))
