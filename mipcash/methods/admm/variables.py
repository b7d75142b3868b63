"""The split of parameters into choices z and hyperparameters theta, and theta as a vector.

Notation
    G groups and D numerical parameters of the program;   Z of the groups are choices.
    z (Z,)      levels of the choices: modules, plain categories, categories on which others depend, positions in orders.
    theta (P,)  coordinates in [0, 1] of everything else. An ordered group has one, its level (an integer: its value on the unit
                scale). A category has one per level, one-hot, or one if it has two levels. A numerical parameter has its unit
                    value.
    m (P,)      metric: ||theta - theta'||^2 = sum_p m_p (theta_p - theta'_p)^2, 1/2 for one-hot coordinates, so that the distance
                of two categories equals that of the two ends of a numerical parameter.
    D~, D       the box [0, 1]^P, which contains theta~;   the points of it that are rounded to levels and integers, as delta is

Hyperparameters of algorithms that are not chosen also have coordinates in theta, on which no evaluation depends: the inactive set
of liu2020, eq. 9. Categories among the hyperparameters belong to theta^d by their one-hot coordinates, as in the papers.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mipcash.modelling.declaration import Declaration
from mipcash.modelling.domains import Integer
from mipcash.modelling.parameters import ModuleParameter
from mipcash.program.forms import Booleans, Indices, Vector
from mipcash.program.points import Points
from mipcash.program.program import BinaryProgram, Condition, Group
from mipcash.program.unit_scale import INACTIVE, UnitScale
from mipcash.space.domain import Domain

ONE_HOT = 0.5
"""Metric of one-hot coordinates."""


@dataclass(frozen=True, eq=False)
class Variables:
    """The variables in the module's notation.

    Attributes:
        program, scale: of the space.
        choices, tuned: groups that are z, shape (Z,), and the other groups.
        tables: coordinates of every level of each tuned group, shape (levels, coordinates).
    """

    program: BinaryProgram
    scale: UnitScale
    choices: Indices
    tuned: Indices
    tables: tuple[Vector, ...]
    _active: dict[bytes, Booleans] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, domain: Domain) -> Variables:
        """Make the variables of a domain."""
        program = domain.program
        conditions = [*(group.conditions for group in program.groups), *domain.scale.conditions]
        deciding = program.parents(c for each in conditions for c in each)
        chosen = [_is_choice(domain.declaration, g, group, deciding) for g, group in enumerate(program.groups)]
        choices = np.flatnonzero(np.array(chosen, dtype=bool))
        tuned = np.flatnonzero(~np.array(chosen, dtype=bool))
        tables = tuple(_table(program, program.groups[g]) for g in tuned)
        return cls(program, domain.scale, choices, tuned, tables)

    @property
    def size(self) -> int:
        """Number of coordinates P."""
        return int(self.spans[-1]) + len(self.scale)

    @cached_property
    def spans(self) -> Indices:
        """Index of the first coordinate of each tuned group, and of the numerical parameters."""
        return np.cumsum([0, *(t.shape[1] for t in self.tables)])

    @cached_property
    def sizes(self) -> Indices:
        """Levels of each choice, off included: shape (Z,)."""
        return self.program.sizes[self.choices]

    @cached_property
    def levels(self) -> Indices:
        """Number of values of each coordinate, 0 for a real: shape (P,)."""
        groups = [2 if t.shape[1] > 1 else len(t) for t in self.tables for _ in range(t.shape[1])]
        numbers = [0 if d.step is None else len(d.values) for d in self.scale.domains]
        return np.array([*groups, *numbers], dtype=np.int64)

    @cached_property
    def integral(self) -> Booleans:
        """Mask of the coordinates of theta^d: shape (P,)."""
        return np.asarray(self.levels > 0)

    @cached_property
    def metric(self) -> Vector:
        """The metric m, shape (P,)."""
        groups = [ONE_HOT if t.shape[1] > 1 else 1.0 for t in self.tables for _ in range(t.shape[1])]
        return np.array([*groups, *([1.0] * len(self.scale))])

    # -- points and vectors -------------------------------------------------------------------------------------

    def z(self, points: Points) -> Indices:
        """Return the choices of B points: (B, Z)."""
        return points.levels[:, self.choices]

    def theta(self, points: Points) -> Vector:
        """Return theta of B points, 1/2 where inactive: (B, P)."""
        parts = []
        for g, table in zip(self.tuned, self.tables, strict=True):
            off = np.full((1, table.shape[1]), INACTIVE)
            parts.append(np.concatenate([table, off])[np.minimum(points.levels[:, g], len(table))])
        on = self.scale.active_at(self.program, points.levels) > 0
        return np.concatenate([*parts, np.where(on, points.units, INACTIVE)], axis=1)

    def shown(self, points: Points) -> Booleans:
        """Return a mask of the active coordinates of B points: (B, P)."""
        parts = [
            np.repeat((points.levels[:, g] < len(table))[:, None], table.shape[1], axis=1)
            for g, table in zip(self.tuned, self.tables, strict=True)
        ]
        on = self.scale.active_at(self.program, points.levels) > 0
        return np.concatenate([*parts, on], axis=1)

    def groups(self, theta: Vector) -> list[Vector]:
        """Return the coordinates of each tuned group."""
        return [theta[a:b] for a, b in itertools.pairwise(self.spans)]

    def costs(self, theta: Vector) -> list[Vector]:
        """Return ||table[l] - theta||^2 for each level of each tuned group."""
        metrics = self.groups(self.metric)
        parts = zip(self.tables, self.groups(theta), metrics, strict=True)
        return [np.asarray(((table - at) ** 2) @ metric) for table, at, metric in parts]

    def units(self, theta: Vector) -> Vector:
        """Return the numbers' unit values: (D,)."""
        return theta[self.spans[-1] :]

    def rounded(self, theta: Vector) -> Vector:
        """Return the nearest values, coordinate by coordinate, regardless of rules: liu2020, eq. 11. (P,) -> (P,)"""
        parts = [table[int(np.argmin(cost))] for table, cost in zip(self.tables, self.costs(theta), strict=True)]
        return np.concatenate([*parts, self.scale.rounded(np.clip(self.units(theta), 0.0, 1.0))])

    # -- active and inactive sets -------------------------------------------------------------------------------

    def active(self, z: Indices) -> Booleans:
        """Return the active set of a choice: coordinates that can be active with it and have more than one value; (Z,) -> (P,).

        Activity that depends on theta itself counts as possible.
        """
        key = z.tobytes()
        if key not in self._active:
            levels = np.zeros(len(self.program.groups), dtype=np.int64)
            levels[self.choices] = z
            on = [self._possible(self.program.groups[g].conditions, levels) for g in self.tuned]
            groups = [[possible] * t.shape[1] for possible, t in zip(on, self.tables, strict=True)]
            numbers = [self._possible(conditions, levels) for conditions in self.scale.conditions]
            mask = np.array([*itertools.chain(*groups), *numbers], dtype=bool)
            self._active[key] = mask & (self.levels != 1)
        return self._active[key]

    def _possible(self, conditions: tuple[Condition, ...], levels: Indices) -> bool:
        for condition in conditions:
            groups = self.program.group_of[condition.columns]
            if np.all(np.isin(groups, self.choices)) and not condition.holds(self.program.one_hot(levels)):
                return False
            tuned = [self.program.groups[g] for g in np.setdiff1d(groups, self.choices)]
            if any(not self._possible(group.conditions, levels) for group in tuned if group.conditions):
                return False
        return True


def _is_choice(declaration: Declaration, g: int, group: Group, deciding: set[int]) -> bool:
    if group.kind == "ordering":
        return True
    if group.kind != "categorical":
        return False
    module = isinstance(declaration.parameters[group.parameter], ModuleParameter)
    return module or not group.conditional or g in deciding


def _table(program: BinaryProgram, group: Group) -> Vector:
    """Return the coordinates of the levels of a tuned group: (levels, coordinates)."""
    n, domain = group.n_levels, program.domains[group.parameter]
    if not group.ordered and n > 2:
        return np.eye(n)
    if isinstance(domain, Integer) and n > 1:
        return np.array([[domain.to_unit(v)] for v in group.values])
    return np.linspace(0.0, 1.0, n)[:, None] if n > 1 else np.full((1, 1), INACTIVE)
