"""The continuous part of a configuration: numerical parameters without one-hot levels ("numbers") on the unit scale.

Notation
    u (B, D)    unit values of the D numbers (reals, wide integers, wide reals with a step), in the order of declaration; 0.5 if
                inactive
    on (B, D)   1 if the number is active

A number with a step, such as a wide integer, takes the unit value of its rounded value, so that a surrogate is constant between
steps (Garrido-Merchan and Hernandez-Lobato 2020).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from mipcash.modelling.declaration import Declaration
from mipcash.modelling.domains import Configuration, Integer
from mipcash.program.forms import Booleans, Indices, Vector
from mipcash.program.program import BinaryProgram, Condition, Indicator, NumberColumn

INACTIVE = 0.5
ALWAYS = Indicator(1.0, np.zeros(0, dtype=np.int64), np.zeros(0))
"""The condition of a number that is always active."""
RESOLVED = 2
"""Number of conditions of a numerical parameter that a quadratic form can multiply."""


class UnitScale:
    """Conversion of configurations to unit values and back.

    Attributes:
        labels: D names.
        domains: D domains.
        conditions: D tuples of indicators; () for a number that is always active.
    """

    def __init__(self, declaration: Declaration, program: BinaryProgram) -> None:
        tuned = [n for n in declaration.numbers if n.tuned]
        self.labels, self.domains = tuple(n.label for n in tuned), tuple(n.domain for n in tuned)
        self.conditions = tuple(program.conditions.get(label, ()) for label in self.labels)
        self._fixed = np.array([isinstance(n, Integer) and n.low == n.high for n in self.domains], dtype=bool)
        """True for integers with a single value."""
        self._log = np.array([n.log for n in self.domains], dtype=bool)
        self._ends = np.array([(n.low, n.high) for n in self.domains], dtype=float).reshape(-1, 2).T
        """Lowest and highest value of each number, of logarithms on a log scale: (D,) each."""
        np.log(self._ends, out=self._ends, where=self._log)
        self.place: Mapping[str, int] = {label: d for d, label in enumerate(self.labels)}

    def __len__(self) -> int:
        return len(self.labels)

    def units(self, configs: Sequence[Configuration]) -> Vector:
        """Return unit values, shape (B, D)."""
        return np.array([self.to_unit(config) for config in configs]).reshape(len(configs), len(self))

    def active(self, z: Vector) -> Vector:
        """Return the activity of the numbers: (B, n_z) -> (B, D)."""
        on = np.ones((len(z), len(self)))
        for d, conditions in enumerate(self.conditions):
            for condition in conditions:
                on[:, d] *= condition.holds(z)
        return on

    def active_at(self, program: BinaryProgram, levels: Indices) -> Vector:
        """Return the activity of the numbers at levels: (B, G) -> (B, D)."""
        return self.activities(program).at(levels)

    def activities(self, program: BinaryProgram) -> Activities:
        """Return the conditions as tables over the levels of a program, cached in it."""
        return program.once(("activities", self.labels), lambda: Activities(program, self.conditions))

    def natural(self, u: Vector, labels: Collection[str] | None = None) -> dict[str, float]:
        """Return natural values (integers rounded) of one point's unit values, shape (D,); of some numbers, or of all (None)."""
        if labels is None:
            return {l: float(d.from_unit(v)) for l, d, v in zip(self.labels, self.domains, u, strict=True)}
        return {l: float(self.domains[d].from_unit(u[d])) for l, d in ((l, self.place[l]) for l in labels)}

    @cached_property
    def _stepped(self) -> tuple[Indices, Vector, Booleans]:
        """The k numbers with a step and several values: indices, a table (5, k), and which of them have a log scale.

        Rows of the table: first end and span, of logarithms on a log scale; lowest value, step and index of the highest value.
        Plain reals are in units of the step, from 0.
        """
        at, rows, log = list[int](), list[tuple[float, ...]](), list[bool]()
        for d, n in enumerate(self.domains):
            if n.step is None or n.low >= n.high:
                continue
            last = float(len(n.values) - 1)
            if n.log:
                rows.append((math.log(n.low), math.log(n.high) - math.log(n.low), n.low, float(n.step), last))
            elif isinstance(n, Integer):
                rows.append((n.low, n.high - n.low, n.low, n.step, last))
            else:
                rows.append((0.0, last, 0.0, 1.0, last))
            at.append(d)
            log.append(n.log)
        table = np.array(rows, dtype=float).reshape(-1, 5).T
        return np.array(at, dtype=np.int64), table, np.array(log, dtype=bool)

    def rounded(self, u: Vector, places: int | None = None) -> Vector:
        """Return unit values with every number that has a step rounded to its nearest value: (..., D) -> (..., D).

        Args:
            places: decimal places to which the other numbers are rounded; None: they are not.
        """
        u = np.asarray(u, dtype=float)
        found: Vector = u.copy() if places is None else np.round(u, places)
        at, (first, span, low, step, last), log = self._stepped
        if len(at):
            natural = first + _within(u[..., at], 1.0) * span
            np.exp(natural, out=natural, where=log)
            value = low + _within(np.rint((natural - low) / step), last) * step
            np.log(value, out=value, where=log)
            found[..., at] = _within((value - first) / span, 1.0)
        found[..., self._fixed] = 0.5  # as ``Integer.to_unit``
        return found

    def relaxed(self, at: Indices, units: Vector) -> tuple[Vector, Vector]:
        """Return natural values of numbers, not rounded to their steps, and the derivatives with respect to the unit values.

        Args:
            at: indices of k numbers.
            units: their unit values, (k,), as the results.
        """
        (low, high), log = self._ends[:, at], self._log[at]
        span = high - low
        values = low + units * span
        np.exp(values, out=values, where=log)
        return values, np.where(log, values * span, span)

    def to_unit(self, values: Mapping[str, Any]) -> Vector:
        """Return unit values of natural values, shape (D,); 0.5 for a label that is absent."""
        pairs = zip(self.labels, self.domains, strict=True)
        return np.array([d.to_unit(values[l]) if l in values else INACTIVE for l, d in pairs])


def degree(conditions: Sequence[Condition]) -> int:
    """Return the degree of on(z) as a product of conditions; above RESOLVED if a condition is compound and cannot be a factor."""
    return len(conditions) if all(isinstance(c, Indicator) for c in conditions) else RESOLVED + len(conditions)


def resolved(conditions: Sequence[Condition]) -> tuple[Indicator, ...]:
    """Return the conditions that a form can multiply, at most RESOLVED of them."""
    return tuple(c for c in conditions if isinstance(c, Indicator))[:RESOLVED]


def key_of(condition: Condition) -> Hashable:
    """Return a key that is equal for conditions with the same terms."""
    if isinstance(condition, Indicator):
        return condition.constant, condition.columns.tobytes(), condition.coefficients.tobytes()
    return condition.every, *map(key_of, condition.parts)


def _within(values: Vector, high: Vector | float) -> Vector:
    """Return values clipped to [0, ``high``]."""
    return np.minimum(np.maximum(values, 0.0), high)


def activity_product(conditions: Sequence[Indicator], n: int) -> tuple[float, Vector, tuple[Indices, Indices, Vector]]:
    """Return on(z) of at most RESOLVED conditions: constant, linear part (n,), and products as rows, columns and values."""
    a, b = (*conditions, ALWAYS, ALWAYS)[:2]
    linear = np.zeros(n)
    np.add.at(linear, a.columns, a.coefficients * b.constant)
    np.add.at(linear, b.columns, b.coefficients * a.constant)
    rows, cols = np.repeat(a.columns, len(b.columns)), np.tile(b.columns, len(a.columns))
    return a.constant * b.constant, linear, (rows, cols, np.outer(a.coefficients, b.coefficients).ravel())


def decoded(program: BinaryProgram, scale: UnitScale, levels: Indices, u: Vector) -> Configuration:
    """Return the configuration of effective levels (G,) and unit values (D,), without inactive numbers; it may be illegal."""
    on = scale.active_at(program, levels[None])[0] > 0
    natural = scale.natural(u, [label for label, a in zip(scale.labels, on, strict=True) if a])
    return program.decode(levels, natural)


class Activities:
    """Activity of numbers as tables over levels: each condition is evaluated once, although many numbers share it.

    Notation: I different conditions over one group each; condition i holds at level l of its group if table[first_i + l].

    Attributes:
        program: the program of the levels.
        table: truth values of all these conditions, concatenated.
        first, groups: shape (I,).
        others: the conditions over several groups.
        single: numbers with one condition and the index of the condition, shape (2, D_1); -1 - k: the k-th of ``others``.
        several: each number with several conditions, and the indices of the conditions.
        count: D.
    """

    def __init__(self, program: BinaryProgram, conditions: Sequence[Sequence[Condition]]) -> None:
        known: dict[Hashable, int] = {}
        tables, groups, self.others = [np.zeros(0, dtype=bool)], list[int](), list[Condition]()

        def which(c: Condition) -> int:
            key = key_of(c)
            if key not in known and isinstance(c, Indicator):
                tables.append(program.held(c))
                groups.append(int(program.group_of[c.columns[0]]))
                known[key] = len(groups) - 1
            elif key not in known:
                self.others.append(c)
                known[key] = -len(self.others)
            return known[key]

        of = [np.array([which(c) for c in each], dtype=np.int64) for each in conditions]
        single = [(d, int(each[0])) for d, each in enumerate(of) if len(each) == 1]
        self.program, self.count, self.table = program, len(of), np.concatenate(tables)
        self.first = np.cumsum([0, *map(len, tables[1:])])[: len(groups)].astype(np.int64)
        self.groups = np.array(groups, dtype=np.int64)
        self.single = np.array(single, dtype=np.int64).reshape(-1, 2).T
        self.several = [(d, each) for d, each in enumerate(of) if len(each) > 1]

    def at(self, levels: Indices) -> Vector:
        """Return 1 where all conditions of each number hold, else 0: (B, G) -> (B, D)."""
        on = np.ones((len(levels), self.count))
        hold = self.table[self.first + levels[:, self.groups]]
        if self.others:  # the last column belongs to the first of them, index -1
            z = self.program.one_hot(levels)
            further = [c.holds(z) for c in reversed(self.others)]
            hold = np.concatenate([hold, np.stack(further, axis=1)], axis=1)
        on[:, self.single[0]] = hold[:, self.single[1]]
        for d, which in self.several:
            on[:, d] = hold[:, which].all(axis=1)
        return on


Stepped = tuple[NumberColumn, Integer]
"""An integer ``low + step k`` and its domain; its column ``place`` holds k."""


def stepped_integers(program: BinaryProgram) -> list[Stepped]:
    """Return the integers of a program that have a column ``place``."""
    placed = ((n, program.domains[n.label]) for n in program.numbers if n.place >= 0)
    return [(n, domain) for n, domain in placed if isinstance(domain, Integer)]


def set_from_places(numbers: Iterable[Stepped], columns: Vector) -> None:
    """Set integers in ``columns`` to the values of their ``place`` columns, or to 0 if inactive. Modifies ``columns``.

    Args:
        columns: base columns, shape (n,).
    """
    for number, domain in numbers:
        value = domain.low + domain.step * round(float(columns[number.place]))
        active = abs(columns[number.column] - value) <= abs(columns[number.column])
        columns[number.latent] = value
        columns[number.column] = value if active else 0.0
