"""The rules that are left for the numbers once everything discrete is fixed.

Notation
    x (k,)  natural values of the active tuned numbers that occur in rules, in the order of ``labels``
    low_r <= a_r . x + x'Q_r x <= high_r   for each rule r
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mipcash.program.forms import Vector
from mipcash.space.declaration import Declaration, Number
from mipcash.space.domains import Integer
from mipcash.space.rules import Rule, slack

SHRINKAGES = 30
"""Halvings of a step before a walk stays where it is."""


@dataclass(frozen=True)
class NumberRules:
    """Rules over numbers (see the module's notation).

    Attributes:
        labels: k names.
        low, high: natural bounds of x, shape (k,).
        integer: which are integers, shape (k,).
        linear: shape (m, k).
        quadratic: m symmetric matrices, shape (m, k, k).
        row_low, row_high: shape (m,).
        names: rule names.
    """

    labels: tuple[str, ...]
    low: Vector
    high: Vector
    integer: Vector
    linear: Vector
    quadratic: Vector
    row_low: Vector
    row_high: Vector
    names: tuple[str, ...]

    def body(self, x: Vector) -> Vector:
        """Values of the rules' bodies at x, shape (m,)."""
        value: Vector = self.linear @ x + np.einsum("mij,i,j->m", self.quadratic, x, x)
        return value

    def gradient(self, x: Vector) -> Vector:
        """Derivatives of the bodies, shape (m, k)."""
        value: Vector = self.linear + 2.0 * np.einsum("mij,j->mi", self.quadratic, x)
        return value

    def legal(self, x: Vector, tolerance: float = 1.0) -> bool:
        """Whether x is inside its bounds and keeps every rule (``tolerance`` scales the usual slack)."""
        if np.any(x < self.low - 1e-9) or np.any(x > self.high + 1e-9):
            return False
        body, (below, above) = self.body(x), self._slacks
        return bool(np.all((body >= self.row_low - tolerance * below) & (body <= self.row_high + tolerance * above)))

    @cached_property
    def _slacks(self) -> tuple[Vector, Vector]:
        return np.array([slack(b) for b in self.row_low]), np.array([slack(b) for b in self.row_high])

    def walk(self, start: Vector, steps: int, rng: np.random.Generator) -> Vector:
        """Hit-and-run with shrinkage from a legal start; never leaves the legal set.

        Directions keep the linear equations among the reals. An integer moves along its own axis, and where there are no
        equations a real does so in every second step.
        """
        x = start.copy()
        span = np.maximum(self.high - self.low, 1e-12)
        equal = (self.row_low == self.row_high) & ~np.any(self.quadratic, axis=(1, 2))
        equations = self.linear[equal] * span
        real = self.integer == 0
        for _ in range(steps):
            if np.any(self.integer) and (not np.any(real) or rng.random() < 0.5):
                direction = np.zeros(len(x))
                direction[rng.choice(np.flatnonzero(self.integer))] = 1.0
            elif not len(equations) and rng.random() < 0.5:
                # solvers start the walk in corners, which nearly every oblique direction leaves on both sides
                direction = np.zeros(len(x))
                direction[rng.choice(np.flatnonzero(real))] = 1.0
            else:
                direction = np.where(real, rng.normal(size=len(x)), 0.0)
                if len(equations):
                    free = equations[:, real]
                    direction[real] -= np.linalg.pinv(free) @ (free @ direction[real])
            x = self._step(x, direction * span, rng)
        return x

    def _step(self, x: Vector, direction: Vector, rng: np.random.Generator) -> Vector:
        with np.errstate(divide="ignore", invalid="ignore"):
            to_low, to_high = (self.low - x) / direction, (self.high - x) / direction
        moving = np.abs(direction) > 1e-14 * np.maximum(1.0, self.high - self.low)
        if not np.any(moving):
            return x
        left = float(np.max(np.minimum(to_low, to_high)[moving]))
        right = float(np.min(np.maximum(to_low, to_high)[moving]))
        for _ in range(SHRINKAGES):
            # + 0.0 turns a bound of -0.0 at a corner into 0.0: a range from 0.0 to -0.0 counts as negative
            t = rng.uniform(min(left, 0.0), max(right, 0.0) + 0.0)
            trial = np.clip(x + t * direction, self.low, self.high)
            trial = np.where(self.integer > 0, np.round(trial), trial)
            if self.legal(trial, tolerance=0.5):
                return trial
            left, right = (t, right) if t < 0 else (left, t)
        return x


def number_rules(
    declaration: Declaration, rules: Sequence[Rule], assignment: Mapping[int, float], active: Sequence[Number]
) -> NumberRules:
    """What the rules say about the active numbers.

    Args:
        assignment: id of every other variable (levels, inactive numbers, auxiliaries) -> value.
        active: the tuned numbers that are free.
    """
    position = {id(n.variable): k for k, n in enumerate(active)}
    fixed = {i: v for i, v in assignment.items() if i not in position}
    linear, quadratic, low, high, names = [], [], [], [], []
    for rule in rules:
        if not (rule.body.ids & position.keys()):
            continue
        if not all(w.ids <= fixed.keys() for w in rule.when) or not rule.applies(fixed):
            continue
        rest = rule.body.partial(fixed)
        if not rest.ids <= position.keys():
            continue
        row, matrix = np.zeros(len(active)), np.zeros((len(active), len(active)))
        for i, c in rest.linear.items():
            row[position[i]] += c
        for (i, j), c in rest.products.items():
            matrix[position[i], position[j]] += c / 2
            matrix[position[j], position[i]] += c / 2
        linear.append(row)
        quadratic.append(matrix)
        low.append(rule.lower - rest.constant)
        high.append(rule.upper - rest.constant)
        names.append(rule.name)
    k = len(active)
    return NumberRules(
        tuple(n.label for n in active),
        np.array([float(n.domain.low) for n in active]),
        np.array([float(n.domain.high) for n in active]),
        np.array([float(isinstance(n.domain, Integer)) for n in active]),
        np.array(linear).reshape(len(names), k),
        np.array(quadratic).reshape(len(names), k, k),
        np.array(low),
        np.array(high),
        tuple(names),
    )
