"""Encoding of a mixed space in the unit cube, with every parameter as columns in [0, 1], and decoding by rounding.

Notation
    x (B, d)    a configuration in [0, 1]^d: one column per ordered parameter (its level), one-hot columns per category, one
                column per member of an ordering (its position), the unit values of the numerical parameters; 1/2 where inactive
"""

from __future__ import annotations

import itertools

import numpy as np

from mipcash.program.forms import Vector
from mipcash.program.points import Point, Points
from mipcash.program.program import BinaryProgram, Group, orders_of


class UnitCube:
    """Configurations as points of [0, 1]^d and back (see the module's notation).

    Attributes:
        size: d.
        variables: for each column, the index of its parameter, groups before numerical parameters, shape (d,).
        n_variables: number of parameters.
        ordered: True for columns that are not one-hot, shape (d,).
    """

    def __init__(self, program: BinaryProgram, numbers: int) -> None:
        self.program = program
        self.tables = [level_table(g) for g in program.groups]
        ends = np.cumsum([0, *(t.shape[1] for t in self.tables)])
        self.spans = [slice(int(a), int(b)) for a, b in itertools.pairwise(ends)]
        self.discrete = int(ends[-1])
        self.orders = list(orders_of(program).values())
        self.size = self.discrete + numbers
        self.n_variables = len(self.tables) + numbers
        widths = [t.shape[1] for t in self.tables] + [1] * numbers
        self.variables = np.repeat(np.arange(self.n_variables), widths)
        self.ordered = np.repeat([g.ordered for g in program.groups] + [True] * numbers, widths).astype(bool)

    def encode(self, points: Points) -> Vector:
        """Return x of B points: (B, d)."""
        parts = [table[points.levels[:, g]] for g, table in enumerate(self.tables)]
        return np.concatenate([*parts, points.units], axis=1)

    def decode(self, x: Vector) -> Point:
        """Return the point of one x, (d,): the nearest level of every group, active or not, and the unit values."""
        return self.decoded(x[None])[0]

    def decoded(self, x: Vector) -> Points:
        """Return the points of B rows, (B, d), as ``decode`` does for one."""
        levels = np.zeros((len(x), len(self.tables)), dtype=np.int64)
        for g, (table, span) in enumerate(zip(self.tables, self.spans, strict=True)):
            n_levels = self.program.groups[g].n_levels
            if self.program.groups[g].ordered:
                levels[:, g] = np.abs(x[:, span] - table[:n_levels, 0]).argmin(axis=1)
            else:
                levels[:, g] = x[:, span].argmax(axis=1)
        for members in self.orders:
            places = x[:, [self.spans[g].start for g in members]]
            levels[:, members] = np.argsort(np.argsort(places, axis=1, kind="stable"), axis=1, kind="stable")
        return Points(levels, x[:, self.discrete :].copy())


def level_table(group: Group) -> Vector:
    """Return the columns of each level of a group, the off level last: ordered levels on [0, 1], categories one-hot."""
    n_levels = group.n_levels
    if group.ordered:
        table = np.linspace(0.0, 1.0, n_levels)[:, None] if n_levels > 1 else np.full((1, 1), 0.5)
        off = np.full((1, 1), 0.5)
    else:
        table, off = np.eye(n_levels), np.full((1, n_levels), 1.0 / n_levels)
    return np.concatenate([table, off]) if group.conditional else table
