"""Spaces under construction: parameters first, then rules whose bounds come from values that the legal set attains.

This makes spaces that are empty although no single rule is infeasible. The last bound lies just beyond the values of
its left side under the other rules, and well inside its values without them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.fuzz.described import Condition, Drawn, Helper, Parameter, Part, Relation, Rule, Term, Value
from tests.fuzz.table import LARGEST, Body, Floats, Levels, Table, TooLargeError
from tests.fuzz.truth import Truth

CUT, FEW, EMPTY = "cut", "few", "empty"
"""Aims of a rule: leave a part of the legal assignments, one to five configurations, or no configuration."""
FEW_CONFIGS = 5
SEEN_ROWS = 60
"""Largest number of rows whose reals are examined to choose a bound."""


@dataclass
class Sketch:
    """A space under construction.

    Attributes:
        rng: source of every random choice.
        plain: use only small whole coefficients, so that a wrong answer is not a matter of tolerances.
        largest, most: largest number of assignments, set by the kind and by the caller.
        reals: whether the space may have reals.
        knives: number of rules that were dropped because they made an assignment borderline.
        formulas: whether conditions are nested formulas.
        origin: see :class:`Drawn`.
        gridded: parameters that the table represents by a grid of values.
    """

    rng: np.random.Generator
    expand_limit: int = 64
    plain: bool = False
    largest: int = LARGEST
    parameters: list[Parameter] = field(default_factory=list)
    auxiliaries: list[Helper] = field(default_factory=list)
    truth: Truth | None = None
    knives: int = 0
    formulas: bool = False
    origin: str = ""
    gridded: dict[str, Parameter] = field(default_factory=dict)
    most: int = LARGEST
    reals: bool = True

    @property
    def drawn(self) -> Drawn:
        parts = tuple(j.part for j in self.known.judged) if self.truth is not None else ()
        return Drawn(tuple(self.parameters), tuple(self.auxiliaries), parts, self.expand_limit, self.origin)

    @property
    def known(self) -> Truth:
        """Truth of the space drawn so far."""
        if self.truth is None:
            raise RuntimeError("the parameters are not settled yet")
        return self.truth

    @property
    def left(self) -> int:
        """Number of legal configurations of the parameters except reals."""
        return int(self.known.legal_configs.sum())

    def settle(self) -> None:
        """Finish the parameters and list the assignments.

        Raises:
            TooLargeError: there are too many assignments, or reals although ``reals`` is False.
        """
        if self.drawn.reals and not self.reals:
            raise TooLargeError("infinitely many assignments")
        self.truth = Truth.free(Table(self.drawn, min(self.largest, self.most)))

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def one(self, options: Sequence[Any]) -> Any:
        """Return a random option."""
        return options[int(self.rng.integers(len(options)))]

    def some(self, options: Sequence[Any], count: int) -> list[Any]:
        """Return ``count`` different random options, or all options if there are fewer."""
        order = self.rng.permutation(len(options))[:count]
        return [options[int(i)] for i in order]

    def coefficients(self, count: int) -> list[float]:
        """Return random whole, half, decimal or mixed coefficients, with a common scale from 1e-6 to 1e6."""
        if self.plain:
            return [float(c) for c in self.rng.choice([1, 1, 1, 1, -1, -1, -1, 2, -2, 3], count)]
        style = self.one(("whole", "whole", "half", "decimal", "mixed"))
        signs = np.where(self.rng.random(count) < 0.6, 1.0, -1.0)
        if style == "half":
            sizes = self.rng.integers(1, 8, count) / 2
        elif style == "decimal":
            sizes = np.array([0.1, 0.2, 0.3, 0.7, 1.1])[self.rng.integers(5, size=count)]
        elif style == "mixed":
            sizes = self.rng.integers(1, 4, count) * 10.0 ** self.rng.integers(-3, 4, count)
        else:
            sizes = self.rng.choice([1, 1, 1, 2, 3, 7], count).astype(float)
        scale = 10.0 ** self.one((0, 0, 0, 0, 0, -6, -3, 3, 6)) if style != "mixed" else 1.0
        return [float(f"{c:.12g}") for c in signs * sizes * scale]

    # -- rules --------------------------------------------------------------------------------------------------

    def add(self, part: Part) -> bool:
        """Add a part unless it makes an assignment borderline; return True if it was added."""
        found = self.known.plus(part)
        if found.knife:
            self.knives += 1
            return False
        self.truth = found
        return True

    def name(self, direct: bool = False) -> str:
        return f"{'direct_' if direct else 'r'}{len(self.known.judged)}"

    def rule(
        self,
        terms: tuple[Term, ...],
        aim: str,
        when: tuple[Condition, ...] = (),
        equal: bool = False,
        hidden: bool = False,
    ) -> bool:
        """Add a rule over these terms that achieves ``aim``; return True if it was added.

        Args:
            hidden: reject the rule if it is infeasible by itself or with one other part.
        """
        relation = self.relation(terms, aim, when, equal)
        if relation is None:
            return False
        direct = self.origin == "pyomo" or (not when and self.chance(0.15))
        rule = Rule(self.name(direct), relation, when, direct)
        found = self.known.plus(rule)
        self.knives += found.knife
        if found.knife or found.empty != (aim == EMPTY):
            return False
        if hidden and found.contradicts(rule.name):
            return False
        if aim == FEW and not 1 <= int(found.legal_configs.sum()) <= FEW_CONFIGS:
            return False
        self.truth = found
        return True

    def relation(
        self, terms: tuple[Term, ...], aim: str, when: tuple[Condition, ...] = (), equal: bool = False
    ) -> Relation | None:
        """Return a relation over these terms with a bound that fits the aim; None if no bound fits."""
        known = self.known
        body = Body(known.table, Relation(terms, "<=", 0.0))
        rows = np.flatnonzero(known.legal & known.table.applies(when))
        if not len(rows) or (aim == EMPTY and len(rows) < known.legal.sum()):
            return None
        loose = bool(body.open[rows].any())
        if loose and len(rows) > SEEN_ROWS:
            rows = self.rng.permutation(rows)[:SEEN_ROWS]
        low, high = self._reach(body, rows, loose)
        if equal:
            return self._equation(body, rows, low, high, aim, loose)
        sense = self.one(("<=", ">="))
        reach = low if sense == "<=" else -high
        kept = self._limit(body, rows, reach, aim, sense, loose)
        if kept is None:
            return None
        at, bound = kept
        bound = bound if sense == "<=" else -bound
        if at is not None and self.chance(0.6):
            bound = self._border(body, at)
        return Relation(terms, sense, float(bound) + 0.0)

    def _reach(self, body: Body, rows: Levels, loose: bool) -> tuple[Floats, Floats]:
        if not loose:
            return body.constant[rows], body.constant[rows]
        both = [self.known.reach(body, int(r)) for r in rows]
        return np.array([float(l) for l, _ in both]), np.array([float(h) for _, h in both])

    def _limit(
        self,
        body: Body,
        rows: Levels,
        reach: Floats,
        aim: str,
        sense: str,
        loose: bool,
    ) -> tuple[int | None, float] | None:
        """Return a row on the border (or None) and a limit; rows whose reach is at most the limit stay legal."""
        values = np.unique(np.round(reach, 12))
        if aim == EMPTY:
            return self._beyond(body, float(values[0]), sense, loose)
        if aim == FEW:
            configs = rows // self.known.table.repeats
            order = np.sort([reach[configs == c].min() for c in np.unique(configs)])
            k = int(self.rng.integers(1, FEW_CONFIGS + 1))
            if len(order) <= k:
                return None
            inside, outside = float(order[k - 1]), float(order[k])
        else:
            if len(values) < 2:
                return None
            j = int(self.rng.uniform(0.25, 0.85) * (len(values) - 1))
            inside, outside = float(values[j]), float(values[j + 1])
        if outside - inside <= 1e-9 * max(1.0, abs(inside)):
            return None
        limit = _plain(inside, outside)
        at = np.flatnonzero(np.abs(reach - inside) <= 1e-12 * max(1.0, abs(inside)))
        return (None if loose or not len(at) else int(rows[self.one(at.tolist())])), limit

    def _beyond(self, body: Body, best: float, sense: str, loose: bool) -> tuple[int | None, float] | None:
        """Return a limit that no legal row reaches, although the domains alone reach it."""
        sign = 1.0 if sense == "<=" else -1.0
        everywhere = np.sort(np.unique(sign * body.constant))
        scale = float(body.scale)
        if loose:
            step = scale * self.one((0.001, 0.1, 1.0)) * max(1.0, abs(best) / scale * 0.1)
            return None, _plain(best - step, best - 0.5 * step)
        below = everywhere[everywhere < best - 1e-6 * scale]
        if not len(below):
            return None
        near = float(below[-1] if self.chance(0.7) else below[int(self.rng.integers(len(below)))])
        at = int(np.flatnonzero(sign * body.constant == near)[0])
        return at, _plain(near, best)

    def _equation(
        self,
        body: Body,
        rows: Levels,
        low: Floats,
        high: Floats,
        aim: str,
        loose: bool,
    ) -> Relation | None:
        terms = body.relation.terms
        if aim == EMPTY:
            if loose:
                return None
            missing = np.setdiff1d(np.round(body.constant, 12), np.round(low, 12))
            if not len(missing):
                return None
            return Relation(terms, "==", _clean(float(self.one(missing.tolist()))))
        if loose:
            r = int(self.rng.integers(len(rows)))
            share = self.one((0.0, 0.25, 0.5, 0.5, 0.75))
            return Relation(terms, "==", _clean(float(low[r] + share * (high[r] - low[r]))))
        values, counts = np.unique(np.round(low, 12), return_counts=True)
        if aim == FEW:
            values = values[counts <= FEW_CONFIGS * self.known.table.repeats]
        if not len(values) or len(counts) < 2:
            return None
        chosen = self.one(values.tolist())
        at = int(rows[np.flatnonzero(np.round(low, 12) == chosen)[0]])
        return Relation(terms, "==", self._border(body, at) if self.chance(0.5) else _clean(chosen))

    def _border(self, body: Body, row: int) -> float:
        """Return the value of a body at a row in floats, with its terms summed in random order."""
        listed = []
        for term in body.relation.terms:
            product = term.coefficient
            for f in term.factors:
                product *= 0.0 if isinstance(f, Value) and f.name in body.table.reals else body.table.factor(f)[row]
            listed.append(float(product))
        return float(sum(self.some(listed, len(listed)))) + 0.0


def _plain(inside: float, outside: float) -> float:
    """Return a number with few digits between the two."""
    middle = (inside + outside) / 2
    for digits in range(1, 17):
        short = float(f"{middle:.{digits}g}")
        if (
            min(inside, outside) + 0.2 * abs(outside - inside)
            < short
            < max(inside, outside) - 0.2 * abs(outside - inside)
        ):
            return short
    return middle


def _clean(value: float) -> float:
    short = float(f"{value:.10g}")
    return short if math.isclose(short, value, rel_tol=1e-9) or abs(short - value) < 1e-13 else value
