"""Properties of a space that the structured kernel uses: variables, activities, pairs that may interact, and priors.

Notation as in ``mipcash.surrogates.structured.kernel``; "numbers" are the numerical parameters.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from mipcash.program.forms import Indices, Vector
from mipcash.program.program import BinaryProgram, Condition, Group, is_wide
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


@dataclass(frozen=True)
class Structure:
    """Properties of a space that the kernel uses.

    Attributes:
        program: the space compiled.
        conditions: J tuples of indicators.
        pairs: E as a symmetric 0/1 matrix, shape (V, V), zero diagonal; groups first.
    """

    program: BinaryProgram
    conditions: tuple[tuple[Condition, ...], ...]
    pairs: Vector

    @classmethod
    def of(cls, program: BinaryProgram, scale: UnitScale) -> Structure:
        """Return the structure of a program."""
        conditions = scale.conditions
        degrees = np.array([1] * len(program.groups) + [degree(c) for c in conditions])
        pairs = ((degrees[:, None] + degrees) <= 2).astype(float)
        np.fill_diagonal(pairs, 0.0)
        return cls(program, conditions, pairs)

    @property
    def n(self) -> int:
        """Number of base columns of the program."""
        return self.program.n

    @property
    def n_z(self) -> int:
        """Number of binaries among the base columns."""
        return self.program.n_z

    @property
    def groups(self) -> tuple[Group, ...]:
        return self.program.groups

    @property
    def n_groups(self) -> int:
        return len(self.groups)

    @property
    def n_numbers(self) -> int:
        return len(self.conditions)

    @cached_property
    def factors(self) -> dict[tuple[int, bytes], Any]:
        """Cache of ``mipcash.surrogates.structured.posterior``: base and theta -> points and their factor."""
        return {}

    @cached_property
    def off_columns(self) -> Indices:
        """Column of the off level of each binary's group, -1 if the group has none: shape (n_z,)."""
        program = self.program
        off = np.where(program.off_levels < 0, -1, program.starts + program.off_levels)
        return np.asarray(off[program.group_of])

    @cached_property
    def joint(self) -> Indices:
        """Numbers without conditions, which are those of the joint kernel: shape (D,)."""
        return np.flatnonzero(self.degrees == 0)

    @cached_property
    def degrees(self) -> Indices:
        """Number of conditions of each number, shape (J,); above RESOLVED for those that are not in K."""
        return np.array([degree(c) for c in self.conditions], dtype=np.int64)

    @cached_property
    def conditional(self) -> Indices:
        """Numbers with one condition, shape (J_1,)."""
        return np.flatnonzero(self.degrees == 1)

    @cached_property
    def conjunctions(self) -> list[int]:
        """Numbers with two conditions."""
        found: list[int] = np.flatnonzero(self.degrees == RESOLVED).tolist()
        return found

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

    @cached_property
    def ordered(self) -> Indices:
        """Groups with a length-scale, shape (O,)."""
        return np.array([g for g, group in enumerate(self.groups) if has_length(group)], dtype=np.int64)

    @cached_property
    def fixed_blocks(self) -> list[LevelKernel]:
        """k_g of every group at the median of lo; for groups without a length-scale it never changes."""
        return [LevelKernel(group) for group in self.groups]

    def blocks_at(self, lengths: Vector) -> list[LevelKernel]:
        """Return k_g of every group, given the length-scales lo of the ordered groups, (O,)."""
        blocks = list(self.fixed_blocks)
        for g, length in zip(self.ordered.tolist(), lengths.tolist(), strict=True):
            blocks[g] = self._blocks.get((g, length), partial(LevelKernel, self.groups[g], length))
        return blocks

    @cached_property
    def _blocks(self) -> Recent[LevelKernel]:
        return Recent(2 * len(self.groups))

    @cached_property
    def distances(self) -> list[LevelDistance]:
        """d_g of every group."""
        return [LevelDistance(group) for group in self.groups]

    @cached_property
    def wide(self) -> bool:
        """True if there are too many levels or variables for matrices over pairs of them."""
        return is_wide(self.n_z, len(self.pairs))

    @cached_property
    def complete(self) -> bool:
        """True if E has every pair of variables with terms in K, so that sums over pairs have a closed form."""
        return not self.conjunctions

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Slice of each hyperparameter in theta."""
        names = ("a", "b", "m", "lo", "l", "s1", "s2", "sc", "sm", "sq", "w", "r", "sr", "noise")
        g, j = self.n_groups, self.n_numbers
        sizes = [g, j, j, len(self.ordered), len(self.joint), 1, 1, 1, 1, 1, g, j, 1, 1]
        ends = np.cumsum([0, *sizes])
        return {n: slice(int(i), int(j)) for n, i, j in zip(names, ends[:-1], ends[1:], strict=True)}

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
        for g, group in enumerate(self.groups):  # conditions refer to earlier groups
            for condition in group.conditions:
                levels[~condition.holds_at(self.program, levels), g] = self.program.off_levels[g]
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

    @cached_property
    def _deep(self) -> Indices:
        """Numbers with more conditions than a quadratic form can multiply."""
        return np.flatnonzero(self.degrees > RESOLVED)

    @cached_property
    def _activities(self) -> Activities:
        return Activities.of(self.program, self.conditions)

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
