"""The language of drawn rules: terms, relations, clauses and conditions."""

from __future__ import annotations

import itertools
from dataclasses import dataclass


@dataclass(frozen=True)
class Is:
    """Indicator: the parameter takes one of the values at ``levels``; ``negated``: one minus the indicator."""

    name: str
    levels: tuple[int, ...]
    negated: bool = False


@dataclass(frozen=True)
class Active:
    """Indicator: the (conditional) parameter is active."""

    name: str


@dataclass(frozen=True)
class At:
    """Indicator: member ``member`` of the ordering stands at ``position`` (1..T)."""

    name: str
    member: str
    position: int


@dataclass(frozen=True)
class Value:
    """The natural value of a numeric parameter or an auxiliary variable; 0 where it is inactive."""

    name: str


@dataclass(frozen=True)
class Position:
    """The position (1..T) of a member of the ordering."""

    name: str
    member: str


@dataclass(frozen=True)
class Join:
    """Conditions joined by ``kind``: ``&``, ``|``, or ``~`` (of one part)."""

    kind: str
    parts: tuple[Condition, ...]


Indicator = Is | Active | At
Condition = Indicator | Join
Factor = Indicator | Value | Position


@dataclass(frozen=True)
class Term:
    """``coefficient * factor * ...``; at most two factors."""

    coefficient: float
    factors: tuple[Factor, ...]


@dataclass(frozen=True)
class Relation:
    """``sum of terms  sense  bound``, the terms in this order; ``sense`` is ``<=``, ``>=`` or ``==``."""

    terms: tuple[Term, ...]
    sense: str
    bound: float


@dataclass(frozen=True)
class Rule:
    """A named rule; ``direct``: a Pyomo Constraint on the live model instead of ``space.rule``."""

    name: str
    relation: Relation
    when: tuple[Condition, ...] = ()
    direct: bool = False


@dataclass(frozen=True)
class Clause:
    """A LogicalConstraint over literals (parameter, level, wanted): ``any``, ``xor`` or ``implies`` (the last one)."""

    name: str
    kind: str
    literals: tuple[tuple[str, int, bool], ...]


@dataclass(frozen=True)
class Choice:
    """A Disjunction: the relations of at least one disjunct hold.

    Attributes:
        exactly: whether exactly one indicator is true; if False, at least one is true.
        fixed: value of each indicator that is fixed; None: it is free.
        implied: pairs (i, j) of disjuncts: by a LogicalConstraint, indicator i implies indicator j.
    """

    name: str
    disjuncts: tuple[tuple[Relation, ...], ...]
    exactly: bool = True
    fixed: tuple[bool | None, ...] = ()
    implied: tuple[tuple[int, int], ...] = ()

    @property
    def alternatives(self) -> tuple[tuple[Relation, ...], ...]:
        """Relations that hold under each assignment of the indicators that ``fixed`` and ``implied`` allow."""
        found = []
        for on in itertools.product((True, False), repeat=len(self.disjuncts)):
            fixed = all(f is None or f == o for f, o in zip(self.fixed, on, strict=False))
            if (
                (sum(on) == 1 if self.exactly else any(on))
                and fixed
                and all(on[j] or not on[i] for i, j in self.implied)
            ):
                found.append(tuple(r for o, d in zip(on, self.disjuncts, strict=True) if o for r in d))
        return tuple(found)


Part = Rule | Clause | Choice
