"""Assignments that domains and conditions allow, as columns, and rules on them in exact fractions.

* An inactive parameter is absent from a configuration and reads as 0, in values and indicators alike.
* An auxiliary variable takes any integer of its range. A configuration is legal if some values satisfy all rules.
* An ordering is a permutation; its members stand at positions 1..T.

Notation
    C             number of configurations of the parameters except reals.
    A             number of combinations of values of the auxiliary variables.
    N = C A       number of assignments (rows).
    row c A + a   configuration c with combination a.
    scale         largest coefficient of a rule; violations are relative to it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.fuzz.described import (
    Active,
    At,
    Condition,
    Drawn,
    Factor,
    Is,
    Join,
    Parameter,
    Position,
    Relation,
    Term,
    Value,
)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Levels = NDArray[np.int64]
Config = dict[str, Any]

LARGEST = 20_000
"""Largest number of assignments of one space."""
HOLDS_UP_TO = Fraction(1, 10**11)
"""Relative violation up to which a rule clearly holds; it covers the float rounding of a bound."""
BROKEN_FROM = Fraction(1, 10**7)
"""Relative violation from which a rule is clearly violated; an assignment between the two limits is borderline."""
TOLERATED = Fraction(2, 10**9)
"""Violation relative to the largest term from which a rule is violated for any choice of the largest coefficient."""
FLOATS = Fraction(1, 10**13)
"""Violation relative to the largest possible terms: within ten times the documented allowance for rounding."""
ROUNDING = Fraction(1, 2**50)
"""Float rounding of a sum, relative to the sum of its terms' sizes: four units in the last place."""
NEAR = 1e-6
"""Relative distance from the border within which violations are computed in fractions instead of floats."""

BROKEN, HOLDS, OPEN = 0, 1, 2
"""Status of a relation by the discrete part of an assignment; open: the reals decide."""


class TooLargeError(Exception):
    """Raised if a space has more assignments than LARGEST."""


class Table:
    """Assignments of a drawn space without its rules.

    Attributes:
        size: N;  ``repeats``: A;  ``configs``: C.
        levels: discrete parameter -> level, -1 where inactive, shape (N,).
        on: parameter -> whether active, shape (N,).
        values: numeric parameter (no real) or auxiliary variable -> natural value, 0 where inactive, shape (N,).

    Raises:
        TooLargeError: see LARGEST.
    """

    def __init__(self, drawn: Drawn, largest: int = LARGEST) -> None:
        self.drawn = drawn
        self.reals = frozenset(p.name for p in drawn.reals)
        self.levels: dict[str, Levels] = {}
        self.on: dict[str, Bools] = {}
        self.values: dict[str, Floats] = {}
        self.size = 1
        for p in drawn.parameters:
            self._add(p, largest)
        self.configs = self.size
        ranges = [range(h.low, h.high + 1) for h in drawn.auxiliaries]
        listed = list(itertools.product(*ranges))
        self.repeats = len(listed)
        combinations = np.array(listed, dtype=float).reshape(self.repeats, len(ranges))
        self._repeat(np.full(self.size, self.repeats), largest)
        for h, auxiliary in enumerate(drawn.auxiliaries):
            self.values[auxiliary.name] = np.tile(combinations[:, h], self.configs)
        self._rows: dict[tuple[int, ...], int] | None = None

    def indicator(self, indicator: Condition) -> Bools:
        """Return True at rows where a condition holds, shape (N,)."""
        if isinstance(indicator, Join):
            found = [self.indicator(part) for part in indicator.parts]
            if indicator.kind == "~":
                return ~found[0]
            return np.asarray(np.all(found, axis=0) if indicator.kind == "&" else np.any(found, axis=0))
        if isinstance(indicator, Active):
            return self.on[indicator.name]
        if isinstance(indicator, At):
            orders = self.drawn[indicator.name].values
            hit = np.array([order.index(indicator.member) + 1 == indicator.position for order in orders])
            return np.asarray(hit[self.levels[indicator.name]])
        return np.asarray(np.isin(self.levels[indicator.name], indicator.levels) != indicator.negated)

    def applies(self, when: Sequence[Condition]) -> Bools:
        """Return True at rows where all conditions hold, shape (N,)."""
        found = np.ones(self.size, dtype=bool)
        for w in when:
            found &= self.indicator(w)
        return found

    def factor(self, factor: Factor) -> Floats:
        """Return the values of a discrete factor, shape (N,)."""
        if isinstance(factor, Value):
            return self.values[factor.name]
        if isinstance(factor, (Is, Active, At)):
            return self.indicator(factor).astype(float)
        places = np.array([order.index(factor.member) + 1.0 for order in self.drawn[factor.name].values])
        return np.asarray(places[self.levels[factor.name]])

    def config(self, c: int) -> Config:
        """Return configuration c without its reals."""
        row, found = c * self.repeats, {}
        for p in self.drawn.parameters:
            if p.kind != "real" and self.on[p.name][row]:
                found[p.name] = p.values[self.levels[p.name][row]]
        return found

    def active_reals(self, c: int) -> list[Parameter]:
        """Return the reals of configuration c."""
        return [p for p in self.drawn.reals if self.on[p.name][c * self.repeats]]

    def find(self, config: Config) -> int | None:
        """Return the number c of a configuration; None if domains or conditions do not allow it."""
        key = []
        for p in self.drawn.parameters:
            if p.kind != "real":
                at = [l for l, v in enumerate(p.values) if p.name in config and _same(v, config[p.name])]
                if p.name in config and not at:
                    return None
                key.append(at[0] if at else -1)
        if self._rows is None:
            columns = [self.levels[p.name][:: self.repeats] for p in self.drawn.parameters if p.kind != "real"]
            listed = np.array(columns, dtype=np.int64).reshape(len(columns), self.configs).T.tolist()
            self._rows = {tuple(row): c for c, row in enumerate(listed)}
        c = self._rows.get(tuple(key))
        if c is None:
            return None
        expected = set(self.config(c)) | {p.name for p in self.active_reals(c)}
        return c if set(config) == expected else None

    def _add(self, p: Parameter, largest: int) -> None:
        on = self.applies(self.drawn.conditions(p))
        if p.kind == "real":
            self.on[p.name] = on
            return
        counts = np.where(on, len(p.values), 1)
        self._repeat(counts, largest)
        on = np.repeat(on, counts)
        level = np.arange(self.size) - np.repeat(np.cumsum(counts) - counts, counts)
        self.on[p.name] = on
        self.levels[p.name] = np.where(on, level, -1)
        if p.numeric:
            natural = np.array([*map(float, p.values), 0.0])
            self.values[p.name] = natural[self.levels[p.name]]

    def _repeat(self, counts: Levels, largest: int) -> None:
        if int(counts.sum()) > largest:
            raise TooLargeError(f"{int(counts.sum())} assignments")
        for columns in (self.levels, self.on, self.values):
            for name, column in columns.items():
                columns[name] = np.repeat(column, counts)
        self.size = int(counts.sum())


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple):
        return isinstance(b, (tuple, list)) and a == tuple(b)
    return type(a) is type(b) and a == b


def _reach(term: Term, table: Table) -> Fraction:
    """Return the largest absolute value of the factors of a term."""
    reach, parameters = Fraction(1), {p.name: p for p in table.drawn.parameters}
    for factor in term.factors:
        if isinstance(factor, Value) and factor.name in parameters:
            p = parameters[factor.name]
            reach *= max(abs(Fraction(end)) for end in (p.low, p.high, *(p.values[:1]), *(p.values[-1:])))
        elif isinstance(factor, Position):
            reach *= len(parameters[factor.name].values[0])
        elif isinstance(factor, Value):  # an auxiliary variable
            reach *= Fraction(float(np.abs(table.factor(factor)).max(initial=0.0)))
    return reach or Fraction(1)


def _has_levels(term: Term, table: Table) -> bool:
    """Return True if every factor of a term is an expanded parameter, so that each level has a coefficient."""
    parameters = {p.name: p for p in table.drawn.parameters}
    return all(
        isinstance(f, Value)
        and f.name in parameters
        and parameters[f.name].kind in ("integer", "stepped", "ordinal")
        and not table.drawn.wide(parameters[f.name])
        for f in term.factors
    )


class Body:
    """The left side of a relation on a table: a constant and the slopes of the reals, per row.

    Attributes:
        scale: largest coefficient, or largest term if that is smaller, plus an allowance for rounding.
        constant: sum of the terms without reals, in floats, shape (N,).
        reals: names of the reals in the relation.
        open: True at rows where some active real has a slope, shape (N,).
        edge: relative violation from which the relation is clearly violated.
        stretch: largest coefficient of a level of an expanded parameter, relative to the scale; at least 1.
    """

    def __init__(self, table: Table, relation: Relation) -> None:
        self.table, self.relation = table, relation
        self.reals = sorted({n for t in relation.terms for n in _reals(t, table)})
        self.constant, self.open = np.zeros(table.size), np.zeros(table.size, dtype=bool)
        self._size = np.full(table.size, abs(relation.bound))
        self._columns: list[tuple[Fraction, list[Floats], str]] = []
        for term in relation.terms:
            names = _reals(term, table)
            factors = [table.factor(f) for f in term.factors if not (isinstance(f, Value) and f.name in table.reals)]
            product = np.prod([np.ones(table.size), *factors], axis=0)
            self._columns.append((Fraction(term.coefficient), factors, names[0] if names else ""))
            if names:
                self.open |= (product != 0) & table.on[names[0]]
            else:
                self.constant += term.coefficient * product
                self._size += np.abs(term.coefficient * product)
        sizes = [(abs(Fraction(t.coefficient)), _reach(t, table)) for t in relation.terms]
        reaches, bound = [c * size for c, size in sizes], abs(Fraction(relation.bound))
        # a rule may be violated by the rounding of its float sum, 1e-15 of the largest terms; near the bound a term is
        # at most the sum of the bound and the remaining terms
        rounding = 2 * (bound + sum(reaches) - max(reaches)) / 10**6
        self.scale = max(c * min(Fraction(1), size) for c, size in sizes) + rounding
        levels = [c * size for (c, size), t in zip(sizes, relation.terms, strict=True) if _has_levels(t, table)]
        self.stretch = max([Fraction(1), *(c / self.scale for c in levels)])
        # an expanded parameter has one coefficient per level, so its tolerance is 1e-9 of the term
        self.edge = max(
            BROKEN_FROM, FLOATS * (bound + sum(reaches)) / self.scale, TOLERATED * max(reaches) / self.scale
        )

    def exact(self, row: int) -> tuple[Fraction, dict[str, Fraction]]:
        """Return the constant and the slopes of the active reals at a row."""
        constant, slopes = Fraction(0), dict[str, Fraction]()
        for coefficient, factors, name in self._columns:
            value = coefficient
            for column in factors:
                value *= Fraction(float(column[row]))
            if not name:
                constant += value
            elif self.table.on[name][row] and value:
                slopes[name] = slopes.get(name, Fraction(0)) + value
        return constant, {n: s for n, s in slopes.items() if s}

    def violation(self, value: Fraction) -> Fraction:
        """Return the relative violation of a value of the body; negative inside an inequality."""
        return violation(value, self.relation, self.scale)

    def violation_at(self, row: int, config: Config) -> Fraction:
        """Return the violation at a configuration with its reals, less the possible rounding error of its float sum.

        The violation is relative to the largest coefficient, including the coefficients of levels.
        """
        constant, slopes = self.exact(row)
        value = sum((s * Fraction(config[n]) for n, s in slopes.items()), constant)
        size = Fraction(float(self._size[row])) + sum(abs(s * Fraction(config[n])) for n, s in slopes.items())
        return (self.violation(value) - ROUNDING * size / self.scale) / self.stretch

    def violations(self) -> Floats:
        """Return relative violations by the discrete factors, (N,); exact near the border, undefined at open rows."""
        gap, scale = self.constant - self.relation.bound, float(self.scale)
        sides = {"<=": gap, ">=": -gap, "==": np.abs(gap)}
        found: Floats = sides[self.relation.sense] / scale
        doubtful = np.flatnonzero(~self.open & (np.abs(found) < np.maximum(NEAR, 1e-12 * self._size / scale)))
        if len(doubtful):
            columns = [c[doubtful] for _, factors, _ in self._columns for c in factors]
            stacked = np.array(columns, dtype=float).reshape(len(columns), len(doubtful))
            _, first, inverse = np.unique(stacked, axis=1, return_index=True, return_inverse=True)
            exact = [float(self.violation(self.exact(int(r))[0])) for r in doubtful[first]]
            found[doubtful] = np.array(exact)[inverse.reshape(-1)]
        return found


def violation(value: Fraction, relation: Relation, scale: Fraction) -> Fraction:
    """Return the violation of a relation by a value, relative to the scale; negative inside an inequality."""
    gap = value - Fraction(relation.bound)
    return {"<=": gap, ">=": -gap, "==": abs(gap)}[relation.sense] / scale


def _reals(term: Term, table: Table) -> list[str]:
    return [f.name for f in term.factors if isinstance(f, Value) and f.name in table.reals]
