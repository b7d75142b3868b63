"""Plain descriptions of spaces, and what they mean in plain Python: the oracle that mipcash is compared with.

Nothing here asks mipcash what a rule means; only :meth:`Description.build` speaks its public language. Semantics:

    an inactive parameter is absent from a configuration and reads as 0, in values and indicators alike;
    a conditional rule holds only where all its indicators are 1;
    an auxiliary takes any integer of its range: a configuration is legal if some values make all rules hold;
    an ordering is a permutation, its members stand at positions 1..T;
    a disjunction holds if the relations of at least one of its disjuncts do.

Notation
    C   number of configurations at hand;   A   number of combinations of auxiliary values
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.gdp import Disjunction

import mipcash as mc

Configuration = dict[str, Any]
EPSILON = 1e-9


@dataclass(frozen=True)
class Is:
    """Indicator: the parameter takes one of the values at ``levels``; ``negated`` is one minus that."""

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


Indicator = Is | Active | At


@dataclass(frozen=True)
class Value:
    """The natural value of a numeric parameter or auxiliary."""

    name: str


@dataclass(frozen=True)
class Position:
    name: str
    member: str


Factor = Indicator | Value | Position


@dataclass(frozen=True)
class Term:
    coefficient: float
    factors: tuple[Factor, ...]


@dataclass(frozen=True)
class Relation:
    """``sum of terms  sense  bound``."""

    terms: tuple[Term, ...]
    sense: str
    bound: float


@dataclass(frozen=True)
class Rule:
    """``how``: ``rule`` (the language) or ``constraint`` (a Pyomo Constraint on the live model)."""

    name: str
    relation: Relation
    when: tuple[Indicator, ...] = ()
    how: str = "rule"


@dataclass(frozen=True)
class Clause:
    """A LogicalConstraint over literals (parameter, level, wanted): ``any``, ``implies`` (all but the last imply it), ``xor``."""

    kind: str
    literals: tuple[tuple[str, int, bool], ...]


@dataclass(frozen=True)
class Choice:
    """A Disjunction: one list of relations per disjunct."""

    disjuncts: tuple[tuple[Relation, ...], ...]


@dataclass(frozen=True)
class Parameter:
    """One parameter.

    Attributes:
        kind: ``integer``, ``ordinal``, ``categorical``, ``module``, ``ordering`` or ``real``.
        values: all values in order (orderings: all permutations; real: empty).
        options: keyword arguments of the declaration (integer, real), or ``hyper``: algorithm -> declared hyperparameters.
        when: indicators that must all hold.
        implied: declared by its module, not by itself.
    """

    name: str
    kind: str
    values: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    when: tuple[Indicator, ...] = ()
    implied: bool = False

    @property
    def numeric(self) -> bool:
        plain = (int, float)
        return self.kind in ("integer", "real") or (
            self.kind == "ordinal" and all(isinstance(v, plain) and not isinstance(v, bool) for v in self.values)
        )


@dataclass(frozen=True)
class Auxiliary:
    name: str
    low: int
    high: int


@dataclass(frozen=True)
class Description:
    """A space as plain data."""

    parameters: tuple[Parameter, ...]
    auxiliaries: tuple[Auxiliary, ...] = ()
    rules: tuple[Rule, ...] = ()
    clauses: tuple[Clause, ...] = ()
    choices: tuple[Choice, ...] = ()
    expand_limit: int = 64

    # -- plain Python -------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Parameter:
        return next(p for p in self.parameters if p.name == name)

    def holds(self, indicator: Indicator, config: Configuration) -> bool:
        if isinstance(indicator, Active):
            return indicator.name in config
        if isinstance(indicator, At):
            return config[indicator.name].index(indicator.member) + 1 == indicator.position
        values = self[indicator.name].values
        hit = indicator.name in config and any(_same(config[indicator.name], values[l]) for l in indicator.levels)
        return hit != indicator.negated

    def active(self, parameter: Parameter, config: Configuration) -> bool:
        return all(self.holds(w, config) for w in parameter.when)

    def enumerate(self) -> list[Configuration]:
        """All configurations that the domains and conditions allow (rules aside); reals must be absent."""
        found: list[Configuration] = [{}]
        for p in self.parameters:
            found = [
                c | {p.name: v} if on else c
                for c in found
                for on in (self.active(p, c),)
                for v in (p.values if on else (None,))
            ]
        return found

    def factor(self, factor: Factor, config: Configuration, helpers: Mapping[str, int]) -> float:
        if isinstance(factor, Value):
            return float(helpers[factor.name]) if factor.name in helpers else float(config.get(factor.name, 0.0))
        if isinstance(factor, Position):
            return float(config[factor.name].index(factor.member) + 1)
        return float(self.holds(factor, config))

    def term(self, term: Term, config: Configuration, helpers: Mapping[str, int]) -> float:
        product = term.coefficient
        for f in term.factors:
            product *= self.factor(f, config, helpers)
        return product

    def helper_values(self) -> list[dict[str, int]]:
        """All A combinations of the auxiliaries."""
        names = [a.name for a in self.auxiliaries]
        ranges = [range(a.low, a.high + 1) for a in self.auxiliaries]
        return [dict(zip(names, values, strict=True)) for values in itertools.product(*ranges)]

    def bodies(self, terms: Sequence[Term], configs: Sequence[Configuration]) -> np.ndarray:
        """Value of a sum of terms for every configuration and every combination of auxiliaries, shape (C, A)."""
        helpers = self.helper_values()
        total = np.zeros((len(configs), len(helpers)))
        for t in terms:
            product = np.full((1, 1), t.coefficient)
            for f in t.factors:
                if isinstance(f, Value) and any(a.name == f.name for a in self.auxiliaries):
                    product = product * np.array([[float(h[f.name]) for h in helpers]])
                else:
                    product = product * np.array([[self.factor(f, c, {})] for c in configs]).reshape(-1, 1)
            total = total + product
        return total

    def legal(self, configs: Sequence[Configuration]) -> np.ndarray:
        """Which configurations keep all rules, shape (C,)."""
        ok = np.ones((len(configs), len(self.helper_values())), dtype=bool)
        for rule in self.rules:
            applies = np.array([all(self.holds(w, c) for w in rule.when) for c in configs], dtype=bool)
            ok &= self._relation(rule.relation, configs) | ~applies[:, None]
        for choice in self.choices:
            some = np.zeros_like(ok)
            for relations in choice.disjuncts:
                one = np.ones_like(ok)
                for relation in relations:
                    one &= self._relation(relation, configs)
                some |= one
            ok &= some
        for clause in self.clauses:
            ok &= np.array([self._clause(clause, c) for c in configs], dtype=bool)[:, None]
        return ok.any(axis=1)

    def is_legal(self, config: Configuration) -> bool:
        return bool(self.legal([config])[0])

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

    # -- mipcash's public language ------------------------------------------------------------------------------

    def build(self) -> mc.Space:
        """The space, declared through the public language (and the live Pyomo model, where a rule says so)."""
        space = mc.Space("drawn", expand_limit=self.expand_limit)
        handles: dict[str, Any] = {}
        for p in self.parameters:
            if not p.implied:
                self._declare(space, handles, p)
        for a in self.auxiliaries:
            handles[a.name] = space.auxiliary(a.name, a.low, a.high)
        for k, rule in enumerate(self.rules):
            relation = self.relation(rule.relation, handles)
            if rule.how == "constraint":
                space.model.add_component(f"direct_{k}", pyo.Constraint(expr=relation))
            else:
                when = [self.expression(w, handles) for w in rule.when]
                space.rule(rule.name, relation, when=None if not when else when[0] if len(when) == 1 else when)
        for k, clause in enumerate(self.clauses):
            space.model.add_component(f"logic_{k}", pyo.LogicalConstraint(expr=self._logic(clause, handles)))
        for k, choice in enumerate(self.choices):
            listed = [[self.relation(r, handles) for r in relations] for relations in choice.disjuncts]
            space.model.add_component(f"choice_{k}", Disjunction(expr=listed))
        return space

    def _declare(self, space: mc.Space, handles: dict[str, Any], p: Parameter) -> None:
        when = [self.expression(w, handles) for w in p.when]
        given = {"when": None if not when else when[0] if len(when) == 1 else when}
        if p.kind == "integer":
            o = p.options
            handles[p.name] = space.integer(p.name, o["low"], o["high"], step=o["step"], log=o["log"], **given)
        elif p.kind == "real":
            handles[p.name] = space.real(p.name, p.options["low"], p.options["high"], **given)
        elif p.kind == "ordinal":
            handles[p.name] = space.ordinal(p.name, list(p.values), **given)
        elif p.kind == "categorical":
            handles[p.name] = space.categorical(p.name, list(p.values), **given)
        elif p.kind == "ordering":
            handles[p.name] = space.ordering(p.name, [handles[m] for m in sorted(p.values[0])])
        else:
            hyper = {a: {h.rsplit(".", 1)[1]: _domain(self[h]) for h in hs} for a, hs in p.options["hyper"].items()}
            handles[p.name] = space.module(p.name, hyper, **given)
            for algorithm, listed in p.options["hyper"].items():
                for h in listed:
                    handles[h] = handles[p.name].parameter(algorithm, h.rsplit(".", 1)[1])

    def expression(self, factor: Factor, handles: Mapping[str, Any]) -> Any:
        handle = handles[factor.name]
        if isinstance(factor, Value):
            return handle
        if isinstance(factor, Position):
            return handle.position(factor.member)
        if isinstance(factor, At):
            return handle.at(factor.member, factor.position)
        if isinstance(factor, Active):
            return handle.is_active()
        indicator = handle.is_(*(self[factor.name].values[l] for l in factor.levels))
        return 1 - indicator if factor.negated else indicator

    def sum(self, terms: Sequence[Term], handles: Mapping[str, Any]) -> Any:
        total: Any = 0
        for t in terms:
            product: Any = t.coefficient
            for f in t.factors:
                product = product * self.expression(f, handles)
            total = total + product
        return total

    def relation(self, relation: Relation, handles: Mapping[str, Any]) -> Any:
        body = self.sum(relation.terms, handles)
        if relation.sense == "<=":
            return body <= relation.bound
        if relation.sense == ">=":
            return body >= relation.bound
        return body == relation.bound

    def _logic(self, clause: Clause, handles: Mapping[str, Any]) -> Any:
        literals = []
        for name, level, wanted in clause.literals:
            boolean = handles[name].boolean(self[name].values[level])
            literals.append(boolean if wanted else pyo.lnot(boolean))
        if clause.kind == "any":
            return pyo.lor(*literals)
        if clause.kind == "xor":
            return pyo.xor(literals[0], literals[1])
        return pyo.land(*literals[:-1]).implies(literals[-1])


def _domain(p: Parameter) -> Any:
    if p.kind == "integer":
        return mc.Integer(p.options["low"], p.options["high"], p.options["step"], p.options["log"])
    return mc.Ordinal(p.values) if p.kind == "ordinal" else mc.Categorical(p.values)


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and a == b


def key(config: Configuration) -> tuple[tuple[str, str], ...]:
    """A hashable name of a configuration that keeps True, 1 and 1.0 apart."""
    return tuple(sorted((name, repr(value)) for name, value in config.items()))


def handles_of(space: mc.Space, description: Description) -> dict[str, Any]:
    """Name -> declared parameter, to build further expressions over a built space."""
    return {
        name: space[name]
        for name in [*(p.name for p in description.parameters), *(a.name for a in description.auxiliaries)]
    }


def iterate_terms(description: Description) -> Iterator[Term]:
    """All terms of all rules."""
    for rule in description.rules:
        yield from rule.relation.terms
    for choice in description.choices:
        for relations in choice.disjuncts:
            for relation in relations:
                yield from relation.terms
