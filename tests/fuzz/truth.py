"""Legal assignments of a drawn space, decided exactly, and the answers that follow from them.

* A rule holds where it is violated by at most 1e-9 of its largest coefficient.
* A conditional rule also holds where one of its conditions fails.
* A disjunction holds if the relations of at least one of its disjuncts hold.

An assignment is borderline if its violation is between 1e-11 and 1e-7; the upper end is larger for sums with larger
rounding errors. Drawn spaces have no borderline assignments, so no reasonable tolerance changes an answer.

Reals are decided by :mod:`tests.fuzz.simplex`, once per assignment of the remaining variables.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from tests.fuzz.described import Choice, Clause, Drawn, Is, Part, Relation, Rule, Term
from tests.fuzz.simplex import Row, Simplex, System
from tests.fuzz.table import BROKEN, HOLDS, HOLDS_UP_TO, OPEN, Body, Bools, Config, Floats, Table

ALLOWED = Fraction(1, 10**9)
"""The relative violation that the definition of legal allows."""
INFINITE = Fraction(10**30)


@dataclass(frozen=True)
class Judged:
    """A part of a space (rule, clause or disjunction) on a table.

    Attributes:
        status: BROKEN, HOLDS or OPEN by the discrete factors alone, shape (N,).
        applies: True at rows where the conditions of the part hold, shape (N,).
        alternatives: relations of each disjunct; a rule has one list of one relation, a clause has no list.
        open: per alternative, status of each of its relations, shape (N,).
        knife: whether some row is borderline.
    """

    part: Part
    status: np.ndarray[Any, Any]
    applies: Bools
    alternatives: tuple[tuple[Body, ...], ...]
    open: tuple[tuple[np.ndarray[Any, Any], ...], ...]
    knife: bool


def judge(table: Table, part: Part) -> Judged:
    """Return the status of a part on a table."""
    everywhere = np.ones(table.size, dtype=bool)
    if isinstance(part, Clause):
        return Judged(part, _clause(table, part).astype(np.int8), everywhere, (), (), False)
    listed = part.alternatives if isinstance(part, Choice) else ((part.relation,),)
    applies = table.applies(part.when) if isinstance(part, Rule) else everywhere
    bodies = tuple(tuple(Body(table, r) for r in relations) for relations in listed)
    open_, knife, status = [], False, np.zeros(table.size, dtype=np.int8)
    for relations in bodies:
        codes = []
        for body in relations:
            found = body.violations()
            edge = (found > float(HOLDS_UP_TO)) & (found < float(body.edge)) & ~body.open & applies
            knife |= bool(edge.any())
            codes.append(np.where(body.open, OPEN, np.where(found <= float(HOLDS_UP_TO), HOLDS, BROKEN)))
        stacked = np.array(codes).reshape(len(codes), table.size)
        one = np.where((stacked == BROKEN).any(axis=0), BROKEN, stacked.max(axis=0, initial=HOLDS))
        status = np.where(status == HOLDS, HOLDS, np.where(one == BROKEN, status, one))
        open_.append(tuple(codes))
    return Judged(part, np.where(applies, status, HOLDS), applies, bodies, tuple(open_), knife)


def _clause(table: Table, clause: Clause) -> Bools:
    truths = [table.indicator(Is(n, (l,), not wanted)) for n, l, wanted in clause.literals]
    if clause.kind == "any":
        return np.asarray(np.any(truths, axis=0))
    if clause.kind == "xor":
        return np.asarray(truths[0] != truths[1])
    return np.asarray(truths[-1] | ~np.all(truths[:-1], axis=0))


@dataclass(frozen=True)
class Cell:
    """Reals of one legal row: the reals that rules bind and a feasible dictionary, per branch of its disjunctions."""

    branches: tuple[tuple[tuple[str, ...], Simplex], ...]


@dataclass(frozen=True)
class Truth:
    """Legal assignments under some parts.

    Attributes:
        legal: True at legal rows, shape (N,).
        knife: whether these parts make some row borderline.
        cells: legal row -> its reals; rows whose reals no rule binds have no cell.
    """

    table: Table
    judged: tuple[Judged, ...] = ()
    legal: Bools = field(default_factory=lambda: np.zeros(0, dtype=bool))
    knife: bool = False
    cells: dict[int, Cell] = field(default_factory=dict)

    @classmethod
    def free(cls, table: Table) -> Truth:
        """Return the truth without parts, where every assignment is legal."""
        return cls(table, (), np.ones(table.size, dtype=bool))

    def plus(self, part: Part) -> Truth:
        """Return the truth with one more part."""
        return self.joined((*self.judged, judge(self.table, part)), self.legal)

    def only(self, names: Collection[str]) -> Truth:
        """Return the truth with only the parts of these names."""
        return self.joined([j for j in self.judged if j.part.name in names], np.ones(self.table.size, dtype=bool))

    def joined(self, judged: Sequence[Judged], among: Bools) -> Truth:
        """Return the truth of these parts; rows outside ``among`` must be illegal."""
        legal, knife = among.copy(), any(j.knife for j in judged)
        for j in judged:
            legal &= j.status != BROKEN
        unsettled = np.zeros(self.table.size, dtype=bool)
        for j in judged:
            unsettled |= j.status == OPEN
        cells: dict[int, Cell] = {}
        for row in np.flatnonzero(legal & unsettled).tolist():
            branches, edge = self._branches(judged, row)
            knife |= edge
            legal[row] = bool(branches)
            if branches:
                cells[row] = Cell(branches)
        return Truth(self.table, tuple(judged), legal, knife, cells)

    # -- answers ------------------------------------------------------------------------------------------------

    @property
    def empty(self) -> bool:
        return not self.legal.any()

    @property
    def legal_configs(self) -> Bools:
        """Legal configurations, shape (C,)."""
        return np.asarray(self.legal.reshape(self.table.configs, self.table.repeats).any(axis=1))

    def settings(self, names: Sequence[str]) -> int:
        """Return the number of legal settings of some discrete parameters."""
        if self.empty or not names:
            return int(not self.empty)
        return int(np.unique([self.table.levels[n][self.legal] for n in names], axis=1).shape[1])

    def reach(self, body: Body, row: int, tolerance: Fraction | None = None) -> tuple[Fraction, Fraction]:
        """Return the least and greatest value of a body at a legal row; a tolerance loosens the rules."""
        low, high = zip(*self.reaches(body, row, tolerance) or [(INFINITE, -INFINITE)], strict=True)
        return min(low), max(high)

    def reaches(self, body: Body, row: int, tolerance: Fraction | None = None) -> list[tuple[Fraction, Fraction]]:
        """Return ``reach`` for each feasible branch of the row's disjunctions."""
        constant, slopes = body.exact(row)
        if not slopes:
            return [(constant, constant)]
        found: list[tuple[Fraction, Fraction]] = []
        cell = self.cells.get(row)
        branches = cell.branches if cell is not None else (((), None),)
        if tolerance is not None and cell is not None:
            branches = self._branches(self.judged, row, tolerance)[0]
        for names, simplex in branches:
            least = greatest = constant
            for name, slope in slopes.items():
                if name not in names:
                    ends = [slope * Fraction(e) for e in (self.table.drawn[name].low, self.table.drawn[name].high)]
                    least, greatest = least + min(ends), greatest + max(ends)
            costs = [slopes.get(name, Fraction(0)) for name in names]
            if simplex is not None and any(costs):
                least -= simplex.best([-c for c in costs])
                greatest += simplex.best(costs)
            found.append((least, greatest))
        return found

    def extremes(self, terms: tuple[Term, ...], tolerance: Fraction | None = None) -> tuple[Fraction, Fraction]:
        """Return the least and greatest value of a sum of terms over the legal assignments, at least one."""
        body = Body(self.table, Relation(terms, "<=", 0.0))
        rows = np.flatnonzero(self.legal)
        if not body.open[rows].any():
            values = body.constant[rows]
            slack = 1e-12 * max(1.0, float(np.abs(values).max()), float(body.scale))
            ends = []
            for sign in (1.0, -1.0):
                found, first = np.unique(sign * values, return_index=True)
                near = rows[first[found <= found[0] + slack]]
                ends.append(min(int(sign) * body.exact(int(r))[0] for r in near[:50]))
            return ends[0], -ends[1]
        both = [self.reach(body, r, tolerance) for r in rows.tolist()]
        return min(l for l, _ in both), max(h for _, h in both)

    def ends(self, terms: tuple[Term, ...], row: int, tolerance: Fraction | None = None) -> tuple[Fraction, Fraction]:
        """Return the least and greatest value of a sum of terms at a legal row; a tolerance loosens the rules."""
        return self.reach(Body(self.table, Relation(terms, "<=", 0.0)), row, tolerance)

    def violation(self, config: Config) -> Fraction | None:
        """Return the greatest relative violation of a configuration beyond float rounding.

        Auxiliary variables take their best values. The result is None if domains or conditions do not allow the
        configuration.
        """
        c = self.table.find(config)
        if c is None:
            return None
        for p in self.table.active_reals(c):
            slack = 1e-9 * max(1.0, abs(p.low), abs(p.high))
            if type(config[p.name]) is not float or not p.low - slack <= config[p.name] <= p.high + slack:
                return None
        rows = range(c * self.table.repeats, (c + 1) * self.table.repeats)
        return min(max([Fraction(-1), *(self._violation(j, r, config) for j in self.judged)]) for r in rows)

    def relaxation(self, name: str) -> float | None:
        """Return the least violation of a rule, in units of its body, where other parts hold; None if they never do."""
        chosen = next(j for j in self.judged if j.part.name == name)
        rest = self.only({j.part.name for j in self.judged} - {name}).legal & chosen.applies
        body = chosen.alternatives[0][0]
        found: Floats = body.violations()[rest]
        return float(found.min() * float(body.scale)) if len(found) else None

    def contradicts(self, name: str) -> bool:
        """Return True if a part is infeasible by itself or together with one other part."""
        others = [j.part.name for j in self.judged if j.part.name != name]
        return self.only({name}).empty or any(self.only({name, other}).empty for other in others)

    # -- internals ----------------------------------------------------------------------------------------------

    @staticmethod
    def _violation(j: Judged, row: int, config: Config) -> Fraction:
        if not j.alternatives:
            return Fraction(-1) if j.status[row] else INFINITE
        if not j.applies[row]:
            return Fraction(-1)
        best = INFINITE
        for bodies in j.alternatives:
            worst = Fraction(-1)
            for body in bodies:
                worst = max(worst, body.violation_at(row, config))
            best = min(best, worst)
        return best

    def _branches(
        self, judged: Sequence[Judged], row: int, tolerance: Fraction | None = None
    ) -> tuple[tuple[tuple[tuple[str, ...], Simplex], ...], bool]:
        """Return the feasible branches of a row's disjunctions, and whether its feasibility is borderline."""
        choices: list[list[list[Body]]] = []
        for j in judged:
            if j.status[row] == OPEN:
                listed = zip(j.alternatives, j.open, strict=True)
                choices.append(
                    [
                        [b for b, code in zip(bodies, codes, strict=True) if code[row] == OPEN]
                        for bodies, codes in listed
                        if all(code[row] != BROKEN for code in codes)
                    ]
                )
        # smaller tolerances extrapolate the answer to a tolerance of zero, at the scale of the answer itself
        loose = tolerance is not None and tolerance > HOLDS_UP_TO
        systems = [
            self._system([b for group in branch for b in group], row, loose=loose)
            for branch in itertools.product(*choices)
        ]
        for at in (Fraction(0), HOLDS_UP_TO) if tolerance is None else (tolerance,):
            feasible = [(names, s) for names, system in systems for s in (Simplex(system, at),) if s.feasible]
            if feasible:
                return tuple(feasible), False
        near = (
            self._system([b for group in branch for b in group], row, True) for branch in itertools.product(*choices)
        )
        return (), tolerance is None and any(Simplex(system, Fraction(1)).feasible for _, system in near)

    def _system(
        self, bodies: Sequence[Body], row: int, edges: bool = False, loose: bool = False
    ) -> tuple[tuple[str, ...], System]:
        """Return the reals that bodies bind at a row, and their linear program.

        Args:
            edges: scale tolerances by ``Body.edge``.
            loose: scale tolerances by ``Body.stretch``, for the coefficients of levels.
        """
        exact = [body.exact(row) for body in bodies]
        names = tuple(sorted({n for _, slopes in exact for n in slopes}))
        rows = []
        for body, (constant, slopes) in zip(bodies, exact, strict=True):
            bound = Fraction(body.relation.bound) - constant
            sense, scale = body.relation.sense, body.scale * (body.edge if edges else body.stretch if loose else 1)
            a = tuple(slopes.get(n, Fraction(0)) for n in names)
            rows.append(Row(a, None if sense == "<=" else bound, None if sense == ">=" else bound, scale))
        drawn: Drawn = self.table.drawn
        low, high = (tuple(Fraction(getattr(drawn[n], end)) for n in names) for end in ("low", "high"))
        return names, System(low, high, tuple(rows))
