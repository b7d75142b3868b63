"""What a drawn space means in plain Python: the oracle that mipcash is compared with, and that asks it nothing. Semantics:

    an inactive parameter is absent from a configuration and reads as 0, in values and indicators alike;
    a conditional rule holds only where all its indicators are 1;
    a helper takes any integer of its range: a configuration is legal if some values make all rules hold;
    an ordering is a permutation, its members stand at positions 1..T;
    a disjunction holds if the relations of at least one of its disjuncts do.

Notation
    C   number of configurations at hand;   A   number of combinations of helper values
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tests.fuzz.described import (
    Active,
    At,
    Clause,
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

Configuration = dict[str, Any]
EPSILON = 1e-9


class Meaning:
    """What a drawn space means."""

    def __init__(self, drawn: Drawn) -> None:
        self.drawn = drawn

    def holds(self, indicator: Condition, config: Configuration) -> bool:
        if isinstance(indicator, Join):
            found = [self.holds(part, config) for part in indicator.parts]
            return not found[0] if indicator.kind == "~" else all(found) if indicator.kind == "&" else any(found)
        if isinstance(indicator, Active):
            return indicator.name in config
        if isinstance(indicator, At):
            return config[indicator.name].index(indicator.member) + 1 == indicator.position
        values = self.drawn[indicator.name].values
        hit = indicator.name in config and any(_same(config[indicator.name], values[l]) for l in indicator.levels)
        return hit != indicator.negated

    def active(self, parameter: Parameter, config: Configuration) -> bool:
        return all(self.holds(w, config) for w in self.drawn.conditions(parameter))

    def enumerate(self) -> list[Configuration]:
        """All configurations that the domains and conditions allow, rules aside; 0 stands for all values of a real."""
        found: list[Configuration] = [{}]
        for p in self.drawn.parameters:
            values = (0.0,) if p.kind == "real" else p.values
            found = [
                c | {p.name: v} if on else c
                for c in found
                for on in (self.active(p, c),)
                for v in (values if on else (None,))
            ]
        return found

    def factor(self, factor: Factor, config: Configuration, auxiliaries: Mapping[str, int]) -> float:
        if isinstance(factor, Value):
            return (
                float(auxiliaries[factor.name]) if factor.name in auxiliaries else float(config.get(factor.name, 0.0))
            )
        if isinstance(factor, Position):
            return float(config[factor.name].index(factor.member) + 1)
        return float(self.holds(factor, config))

    def term(self, term: Term, config: Configuration, auxiliaries: Mapping[str, int]) -> float:
        product = term.coefficient
        for f in term.factors:
            product *= self.factor(f, config, auxiliaries)
        return product

    def helper_values(self) -> list[dict[str, int]]:
        """All A combinations of the helpers."""
        names = [a.name for a in self.drawn.auxiliaries]
        ranges = [range(a.low, a.high + 1) for a in self.drawn.auxiliaries]
        return [dict(zip(names, values, strict=True)) for values in itertools.product(*ranges)]

    def bodies(self, terms: Sequence[Term], configs: Sequence[Configuration]) -> np.ndarray:
        """Value of a sum of terms for every configuration and every combination of helpers, shape (C, A)."""
        auxiliaries = self.helper_values()
        total = np.zeros((len(configs), len(auxiliaries)))
        for t in terms:
            product = np.full((1, 1), t.coefficient)
            for f in t.factors:
                if isinstance(f, Value) and any(a.name == f.name for a in self.drawn.auxiliaries):
                    product = product * np.array([[float(h[f.name]) for h in auxiliaries]])
                else:
                    product = product * np.array([[self.factor(f, c, {})] for c in configs]).reshape(-1, 1)
            total = total + product
        return total

    def legal(self, configs: Sequence[Configuration]) -> np.ndarray:
        """Which configurations keep all rules, shape (C,)."""
        ok = np.ones((len(configs), len(self.helper_values())), dtype=bool)
        for rule in self.drawn.rules:
            applies = np.array([all(self.holds(w, c) for w in rule.when) for c in configs], dtype=bool)
            ok &= self._relation(rule.relation, configs) | ~applies[:, None]
        for choice in self.drawn.choices:
            some = np.zeros_like(ok)
            for relations in choice.alternatives:
                one = np.ones_like(ok)
                for relation in relations:
                    one &= self._relation(relation, configs)
                some |= one
            ok &= some
        for clause in self.drawn.clauses:
            ok &= np.array([self._clause(clause, c) for c in configs], dtype=bool)[:, None]
        return ok.any(axis=1)

    def _relation(self, relation: Relation, configs: Sequence[Configuration]) -> np.ndarray:
        body, bound = self.bodies(relation.terms, configs), relation.bound
        if relation.sense == "<=":
            return body <= bound + EPSILON
        if relation.sense == ">=":
            return body >= bound - EPSILON
        return np.abs(body - bound) <= EPSILON

    def _clause(self, clause: Clause, config: Configuration) -> bool:
        truths = [self.holds(Is(n, (l,), not wanted), config) for n, l, wanted in clause.literals]
        if clause.kind == "any":
            return any(truths)
        if clause.kind == "xor":
            return truths[0] != truths[1]
        return truths[-1] or not all(truths[:-1])


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and a == b


def key(config: Configuration) -> tuple[tuple[str, str], ...]:
    """A hashable name of a configuration that keeps True, 1 and 1.0 apart."""
    return tuple(sorted((name, repr(value)) for name, value in config.items()))
