"""Properties of a space that the structured kernel uses: variables, activities, pairs that may interact, and priors.

Notation as in ``mipcash.surrogates.structured.kernel``; "numbers" are the numerical parameters.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from functools import cached_property, partial
from typing import Any

import numpy as np

from mipcash.program.forms import Indices, Vector
from mipcash.program.legality import group_activity
from mipcash.program.program import BinaryProgram, is_wide
from mipcash.program.recent import Recent
from mipcash.program.unit_scale import RESOLVED, Activities, UnitScale, degree, key_of
from mipcash.surrogates.level_kernels import ORDINAL_LENGTH, LevelDistance, LevelKernel, has_length

LENGTH = 0.2
"""Median length-scale of a number on the unit scale, multiplied by the root of the number of terms in a joint distance.

With longer length-scales the first proposals lie in corners, since trends of few observations are extrapolated to the bounds
(docs/decisions/003-length-scales-of-numbers.md).
"""

POINTS = 256
"""Number of points over which active variables are counted."""


class Structure:
    """Properties of a space that the kernel uses.

    Attributes:
        program: the space compiled.
        conditions: J tuples of indicators.
        n, n_z: numbers of base columns of the program, and of binaries among them.
        groups, n_groups, n_numbers: the groups; G and J.
        degrees: number of conditions of each number, shape (J,); above RESOLVED for those that are not in K.
        joint: numbers without conditions, which are those of the joint kernel: shape (D,).
        conditional: numbers with one condition, shape (J_1,).
        conjunctions: numbers with two conditions.
        pairs: E as a symmetric 0/1 matrix, shape (V, V), zero diagonal; groups first.
        ordered: groups with a length-scale, shape (O,).
        fixed_blocks: k_g of every group at the median of lo; for groups without a length-scale it never changes.
        distances: d_g of every group.
        off_columns: column of the off level of each binary's group, -1 if the group has none: shape (n_z,).
        slices: slice of each hyperparameter in theta.
        wide: True if there are too many levels or variables for matrices over pairs of them.
        factors: cache of ``mipcash.surrogates.structured.posterior``: base and theta -> points and their factor.
    """

    def __init__(self, program: BinaryProgram, scale: UnitScale) -> None:
        self.program, self.conditions = program, scale.conditions
        self.n, self.n_z, self.groups = program.n, program.n_z, program.groups
        self.n_groups, self.n_numbers = len(self.groups), len(self.conditions)
        self.degrees: Indices = np.array([degree(c) for c in self.conditions], dtype=np.int64)
        self.joint: Indices = np.flatnonzero(self.degrees == 0)
        self.conditional: Indices = np.flatnonzero(self.degrees == 1)
        self.conjunctions: list[int] = np.flatnonzero(self.degrees == RESOLVED).tolist()
        self._deep: Indices = np.flatnonzero(self.degrees > RESOLVED)  # more than a quadratic form can multiply
        together = np.concatenate([np.ones(self.n_groups), self.degrees])
        self.pairs = ((together[:, None] + together) <= RESOLVED).astype(float)
        np.fill_diagonal(self.pairs, 0.0)
        self.ordered: Indices = np.flatnonzero([has_length(group) for group in self.groups])
        self.fixed_blocks = [LevelKernel(group) for group in self.groups]
        self.distances = [LevelDistance(group) for group in self.groups]
        self.wide = is_wide(self.n_z, len(self.pairs))
        off = np.where(program.off_levels < 0, -1, program.starts + program.off_levels)
        self.off_columns: Indices = off[program.group_of]
        names = ("a", "b", "m", "lo", "l", "s1", "s2", "sc", "sm", "sq", "w", "r", "sr", "noise")
        g, j = self.n_groups, self.n_numbers
        ends = np.cumsum([0, g, j, j, len(self.ordered), len(self.joint), 1, 1, 1, 1, 1, g, j, 1, 1]).tolist()
        self.slices = {name: slice(*ends[k : k + 2]) for k, name in enumerate(names)}
        self.factors: dict[tuple[int, bytes], Any] = {}
        self._blocks: Recent[LevelKernel] = Recent(2 * self.n_groups)
        self._activities = Activities(program, self.conditions)

    @cached_property
    def switched(self) -> list[list[Indices]]:
        """The numbers of K by their number of conditions (0, 1, 2), each in sets that are on at the same points."""
        parts: list[dict[Hashable, list[int]]] = [{} for _ in range(RESOLVED + 1)]
        for j, (conditions, count) in enumerate(zip(self.conditions, self.degrees, strict=True)):
            if count <= RESOLVED:
                parts[count].setdefault(tuple(map(key_of, conditions)), []).append(j)
        return [[np.array(part, dtype=np.int64) for part in alike.values()] for alike in parts]

    @cached_property
    def affine(self) -> tuple[Vector, Vector]:
        """on_j = c_j + l_j . z for the numbers with one condition: (J_1,), (n_z, J_1)."""
        constants, linear = np.zeros(len(self.conditional)), np.zeros((self.n_z, len(self.conditional)))
        for k, j in enumerate(self.conditional):
            (indicator,) = self.conditions[j]
            constants[k] = indicator.constant
            np.add.at(linear[:, k], indicator.columns, indicator.coefficients)
        return constants, linear

    def blocks_at(self, lengths: Vector) -> list[LevelKernel]:
        """Return k_g of every group, given the length-scales lo of the ordered groups, (O,)."""
        blocks = list(self.fixed_blocks)
        for g, length in zip(self.ordered.tolist(), lengths.tolist(), strict=True):
            blocks[g] = self._blocks.get((g, length), partial(LevelKernel, self.groups[g], length))
        return blocks

    @cached_property
    def n_active(self) -> float:
        """Mean number of variables that are active at a point, at least 1.

        All algorithms of a module together have many more hyperparameters than any configuration. The mean is over points of an
        additive recurrence, so that the levels of a group are equally frequent.
        """
        if not any(self.conditions) and not any(group.conditions for group in self.groups):
            return max(1.0, float(len(self.pairs)))
        steps = np.sqrt(np.arange(self.n_groups) + 0.5)  # irrational
        levels = (np.outer(np.arange(POINTS), steps) % 1.0 * self.program.n_levels).astype(np.int64)
        levels = group_activity(self.program).effective(levels)
        on = np.sum(levels != self.program.off_levels, axis=1) + self.activity(levels).sum(axis=1)
        return max(1.0, float(on.mean()))

    @cached_property
    def prior(self) -> tuple[Vector, Vector]:
        """Means and standard deviations of theta (docs/model.md, 2.5)."""
        medians = {
            "a": 1.0,
            "b": 1.0,
            "m": LENGTH,
            "lo": ORDINAL_LENGTH,
            "s1": 0.5,
            "s2": 0.3,
            "sc": 0.3,
            "sm": 0.2,
            "sq": 0.1,
        }
        v = self.n_active
        medians |= {"l": LENGTH * math.sqrt(max(1, len(self.joint))), "noise": 1e-3}
        medians |= {"w": 1.5 / v, "r": LENGTH * math.sqrt(v), "sr": 1.0}
        # The priors of lengths are wide: smooth functions need long lengths, and data soon rule out one that is wrong.
        spreads = {"a": 0.5, "b": 0.7, "m": 0.7, "lo": 0.5, "l": 1.0, "w": 1.2, "r": 1.0, "sr": 1.0}
        size = self.slices["noise"].stop
        mean, sd = np.zeros(size), np.zeros(size)
        for name, at in self.slices.items():
            mean[at], sd[at] = math.log(medians[name]), spreads.get(name, 1.5)
        return mean, sd

    def activity(self, levels: Indices) -> Vector:
        """Return 1 for active numbers, else 0: (B, G) -> (B, J)."""
        return self._activities.at(levels)

    def on(self, active: Vector) -> Vector:
        """Return on_j of K from activities: (B, J) -> (B, J)."""
        if not len(self._deep):
            return active
        on = active.copy()
        on[:, self._deep] = 0.0
        return on
