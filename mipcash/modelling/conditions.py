"""Conditions: when a parameter is active, from the 0/1 indicators of ``when=``.

Notation
    literal     "the level of group g is in S"; S may contain OFF, the state of a group that is not active itself
    condition   a literal, or conditions of which all (``every``) or at least one must hold: 0 or 1 by construction
    on          the activity of the parameter, an affine 0/1 expression of the model

A formula is converted into negation normal form over literals. Literals over one group are merged (``a | a`` is ``a``), and
parts that another part implies are dropped (``a | (a & b)`` is ``a``). On the model each inner condition has a binary t of its own
(Tseitin 1968), so that the number of rows grows with the formula and not with its normal forms:

    all of p_1 .. p_k    t <= p_i,  t >= sum_i p_i - (k - 1)
    one of p_1 .. p_k    t >= p_i,  t <= sum_i p_i
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr import numeric_expr as numeric
from pyomo.core.expr.relational_expr import RelationalExpression

from mipcash.errors import SpaceError
from mipcash.modelling.declared import Declared, OneHot
from mipcash.modelling.formulas import ALL, ANY, IMPLIES, NOT, XOR, Always, Formula
from mipcash.modelling.indicators import Activities
from mipcash.modelling.names import user_name
from mipcash.modelling.parameters import Expression, Parameter
from mipcash.modelling.quadratic import Condition, Junction, Quadratic, parse_quadratic
from mipcash.modelling.rules import is_within, slack_of, split_relation
from mipcash.modelling.wording import shortened, strict_ends, written

OFF = -1
"""The state of a group that is not active."""
TOGETHER = 3
"""Largest number of parts of a condition that one row joins. More parts are joined in steps, so that rows can be tabulated."""


# -- indicators of rules ------------------------------------------------------------------------------------------------


def conjunction(when: Any) -> tuple[list[Any], list[Formula]]:
    """Split a ``when=`` into the indicators that ``&`` joins, as a list, and the remaining formulas."""
    if when is None:
        return [], []
    indicators, formulas = list[Any](), list[Formula]()
    left = list(when) if isinstance(when, (list, tuple)) else [when]
    while left:
        each = left.pop(0)
        if not isinstance(each, Formula):
            indicators.append(each)
        elif each.kind == ALL:
            left = [*each.parts, *left]
        elif each.kind == NOT and not isinstance(each.parts[0], (Formula, RelationalExpression)):
            indicators.append(1 - each.parts[0])
        else:
            formulas.append(each)
    return indicators, formulas


def check_indicators(declaration: Declared, what: str, indicators: Iterable[Any]) -> list[Quadratic]:
    """Check the indicators of a ``when=`` and return their polynomials.

    Raises:
        SpaceError: an expression that is no 0/1 indicator.
    """
    return [_indicator(declaration, what, i) for i in indicators if not isinstance(i, Always)]


def _indicator(declaration: Declared, what: str, indicator: Any) -> Quadratic:
    """Return the polynomial of a 0/1 indicator.

    Raises:
        SpaceError: not a 0/1 indicator.
    """
    if isinstance(indicator, (bool, Parameter)) or not hasattr(indicator, "is_expression_type"):
        raise SpaceError(
            f"{what}: when= takes a 0/1 indicator such as layers.is_(1, 2) or activation['relu'], or a relation over one discrete "
            f"parameter; got {_given(indicator)}"
        )
    if isinstance(indicator, RelationalExpression):
        found = of_levels(declaration, what, indicator)
        if found is not None:
            return found
        raise SpaceError(
            f"{what}: when= takes 0/1 indicators such as layers.is_(1, 2), or a relation over one discrete parameter such as "
            f"layers >= 2, not the relation {written(indicator)}. Declare a categorical parameter for the cases, "
            "size = space.categorical('size', ['short', 'long']), take size['long'] as when=, and bind the cases by rules, "
            "space.rule('short', length <= 1.5, when=size['short'])"
        )
    polynomial = parse_quadratic(indicator, f"the condition of {what}")
    declaration.refuse_foreign(f"the condition of {what}", polynomial)
    low, high = declaration.interval(polynomial)
    binary = all(v.is_binary() for v in polynomial.variables.values())
    whole = all(float(c).is_integer() for c in (polynomial.constant, *polynomial.linear.values()))
    if polynomial.products or not (binary and whole and low >= 0 and high <= 1):
        raise SpaceError(
            f"{what}: a condition must be a 0/1 indicator such as layers.is_(1, 2), and "
            f"{shortened(written(indicator), 60)} ranges over [{low:g}, {high:g}]; join indicators by & or |"
        )
    return polynomial


def of_levels(declaration: Declared, what: str, relation: Any) -> Quadratic | None:
    """Return a relation over one discrete parameter as the indicator of the levels at which it holds, else None."""
    body, lower, upper = split_relation(what, relation, strict=True)
    polynomial = parse_quadratic(body, f"the condition of {what}")
    groups = [g for g in declaration.groups if polynomial.ids & {id(v) for v in g.variables}]
    if len(groups) != 1 or polynomial.products or not polynomial.ids <= {id(v) for v in groups[0].variables}:
        return None
    values = {id(v): polynomial.constant + polynomial.linear.get(id(v), 0.0) for v in groups[0].variables}
    slack, strict = slack_of(polynomial, lower, upper), strict_ends(relation)
    holding = [v for v in groups[0].variables if is_within(values[id(v)], lower, upper, slack, strict)]
    return Quadratic(0.0, {id(v): 1.0 for v in holding}, {}, {id(v): v for v in holding})


def _given(value: Any) -> str:
    return "a function" if callable(value) and not hasattr(value, "label") else repr(value)


# -- conditions in normal form ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Literal:
    """The level of a group is in ``holds``; ``states`` are all its states, ``given`` is the indicator that the user wrote."""

    group: int
    holds: frozenset[int]
    states: frozenset[int]
    given: Quadratic | None = field(default=None, compare=False)


@dataclass(frozen=True)
class _Joined:
    """Conditions of which all must hold (``every``), or at least one."""

    every: bool
    parts: tuple[_Node, ...]


_Node = _Literal | _Joined | bool
"""A condition in normal form; True always holds, False never."""


def conditions_of(declaration: Declared, name: str, when: Any) -> tuple[Condition, ...]:
    """Return the conditions over levels under which a parameter is active. All must hold; () if it is always active.

    Args:
        name: of the parameter, for messages.
        when: an indicator, a formula of indicators, or a list of such, all of which must hold. ``child.is_active()`` stands for
            the condition of the child.

    Raises:
        SpaceError: an expression that is no indicator of levels.
    """
    if when is None:
        return ()
    listed = list(when) if isinstance(when, (list, tuple)) else [when]
    reading = _Reading(declaration, name)
    node = _join(True, [reading.node(each, True) for each in listed])
    if node is True:
        return ()
    condition = reading.condition(reading.contradiction() if node is False else node)
    return condition.parts if isinstance(condition, Junction) and condition.every else (condition,)


@dataclass(frozen=True)
class _Reading:
    """Reader of formulas of one declaration; ``name`` is the parameter that messages name."""

    declaration: Declared
    name: str

    def node(self, formula: Any, wanted: bool) -> _Node:
        """Return the normal form of a formula if it is ``wanted``, otherwise of its negation."""
        if isinstance(formula, Formula):
            parts = formula.parts
            if formula.kind == NOT:
                return self.node(parts[0], not wanted)
            if formula.kind in (ALL, ANY):
                return _join((formula.kind == ALL) == wanted, [self.node(part, wanted) for part in parts])
            if formula.kind == IMPLIES:
                return _join(not wanted, [self.node(parts[0], not wanted), self.node(parts[1], wanted)])
            assert formula.kind == XOR
            pairs = [(parts[0], True), (parts[1], not wanted)], [(parts[0], False), (parts[1], wanted)]
            return _join(False, [_join(True, [self.node(part, sign) for part, sign in pair]) for pair in pairs])
        if isinstance(formula, Always):
            return wanted
        polynomial = _indicator(self.declaration, f"parameter {self.name!r}", formula)
        return _signed(self._indicated(polynomial), wanted)

    def _indicated(self, polynomial: Quadratic) -> _Node:
        """Return the normal form of an indicator: of levels of one group, or of the activity of a number."""
        if not polynomial.ids:
            return polynomial.constant > 0.5
        (i, *_), groups = polynomial.ids, self._groups
        activities = {
            id(block.on): label
            for label in self.declaration.conditions
            if (block := self.declaration.model.parameters[label]).component("activity") is not None
        }
        if i in activities and len(polynomial.ids) == 1:
            known = self._known(True, self.declaration.conditions[activities[i]])
            return _signed(known, polynomial.constant < 0.5)
        if not polynomial.ids <= groups.keys():
            strange = (user_name(v) for k, v in polynomial.variables.items() if k not in groups)
            raise SpaceError(
                f"parameter {self.name!r}: its condition must follow from the levels of other parameters, this one uses "
                f"{', '.join(strange)}; use indicators such as layers.is_(1, 2)"
            )
        # a 0/1 value with whole coefficients depends on one group only: two groups could each add 1
        (group,) = {groups[k] for k in polynomial.ids}
        spec = self.declaration.groups[group]
        value = {l: polynomial.constant + polynomial.linear.get(id(v), 0.0) for l, v in enumerate(spec.variables)}
        if spec.on is not None:
            value[OFF] = polynomial.constant
        return _Literal(group, frozenset(s for s, v in value.items() if v > 0.5), frozenset(value), polynomial)

    def _known(self, every: bool, parts: Iterable[Condition]) -> _Node:
        """Return the normal form of declared conditions."""
        return _join(
            every, [self._indicated(p) if isinstance(p, Quadratic) else self._known(p.every, p.parts) for p in parts]
        )

    @property
    def _groups(self) -> dict[int, int]:
        """Id of a level's binary -> index of its group."""
        return {id(v): g for g, spec in enumerate(self.declaration.groups) for v in spec.variables}

    def contradiction(self) -> _Node:
        """Return a condition that never holds: the first group is in a given state and also not in it."""
        if not self.declaration.groups:
            raise SpaceError(f"parameter {self.name!r}: its condition never holds; leave the parameter out")
        spec = self.declaration.groups[0]
        states = frozenset(range(len(spec.variables))) | ({OFF} if spec.on is not None else frozenset())
        some = frozenset({min(states)})
        return _Joined(True, (_Literal(0, some, states), _Literal(0, states - some, states)))

    def condition(self, node: _Node) -> Condition:
        """Return a normal form as a condition over the binaries of the model."""
        assert not isinstance(node, bool)
        if isinstance(node, _Joined):
            return Junction(node.every, tuple(self.condition(part) for part in node.parts))
        return node.given or _as_indicator(self.declaration.groups[node.group], node)


def _as_indicator(spec: OneHot, literal: _Literal) -> Quadratic:
    """Return a literal as an affine 0/1 function of its group's binaries, with as few terms as possible."""
    held, missing = (
        sorted(s for s in states if s != OFF) for states in (literal.holds, literal.states - literal.holds)
    )
    negated = OFF in literal.holds or (spec.on is None and (not held or 0 < len(missing) < len(held)))
    levels, sign = (missing, -1.0) if negated else (held, 1.0)
    variables = [spec.variables[l] for l in levels]
    return Quadratic(float(negated), {id(v): sign for v in variables}, {}, {id(v): v for v in variables})


def _signed(node: _Node, wanted: bool) -> _Node:
    """Return a condition if it is wanted, otherwise its negation."""
    if wanted:
        return node
    if isinstance(node, bool):
        return not node
    if isinstance(node, _Literal):
        given = node.given
        if given is not None:
            given = Quadratic(1.0 - given.constant, {i: -c for i, c in given.linear.items()}, {}, given.variables)
        return _Literal(node.group, node.states - node.holds, node.states, given)
    return _join(not node.every, [_signed(part, False) for part in node.parts])


def _join(every: bool, nodes: Iterable[_Node]) -> _Node:
    """Join conditions by "and" (``every``) or "or", simplified (see the module's description)."""
    flat: list[_Node] = []
    for node in nodes:
        flat += node.parts if isinstance(node, _Joined) and node.every == every else [node]
    if any(node is (not every) for node in flat):
        return not every
    literals: dict[int, _Literal] = {}
    others: dict[_Joined, None] = {}
    for node in flat:
        if isinstance(node, _Literal):
            known = literals.setdefault(node.group, node)
            holds = known.holds & node.holds if every else known.holds | node.holds
            if holds != known.holds:
                literals[node.group] = _Literal(node.group, holds, node.states)
        elif isinstance(node, _Joined):
            others[node] = None
    kept = list[_Literal | _Joined]()
    for literal in literals.values():
        if not literal.holds or literal.holds == literal.states:
            if bool(literal.holds) is not every:
                return not every
        else:
            kept.append(literal)
    kept += others
    for node in list(kept):
        if any(node is not k and (_implies(k, node) if every else _implies(node, k)) for k in kept):
            kept.remove(node)
    return every if not kept else kept[0] if len(kept) == 1 else _Joined(every, tuple(kept))


def _implies(a: _Node, b: _Node) -> bool:
    """Return True only if ``a`` implies ``b``; some implications are not detected."""
    if isinstance(a, _Literal) and isinstance(b, _Literal):
        return a.group == b.group and a.holds <= b.holds
    if a == b:
        return True
    if isinstance(b, _Joined) and b.every:
        return all(_implies(a, part) for part in b.parts)
    if isinstance(a, _Joined) and not a.every:
        return all(_implies(part, b) for part in a.parts)
    return (isinstance(b, _Joined) and any(_implies(a, part) for part in b.parts)) or (
        isinstance(a, _Joined) and any(_implies(part, b) for part in a.parts)
    )


# -- on the model -------------------------------------------------------------------------------------------------------


def activity(block: Any, conditions: tuple[Condition, ...]) -> Expression:
    """Put the activity of a parameter on its block and return it as an affine expression; None if it is always 1.

    The activity under one indicator is the indicator itself. Otherwise it is the sum of the parameter's own levels, or a separate
    binary for a number, tied to the condition by the rows of the module's description.
    """
    if not conditions:
        return None
    if len(conditions) == 1 and isinstance(conditions[0], Quadratic):
        return expression_of(conditions[0])
    if block.component("z") is not None:
        block.at_most_one = pyo.Constraint(expr=sum(block.z.values()) <= 1)
        on = sum(block.z.values())
    else:
        block.activity = Activities([0], domain=pyo.Binary)
        block.on = on = block.activity[0]
    block.parts_on, block.on_rows = pyo.VarList(domain=pyo.Binary), pyo.ConstraintList()
    (only, *more) = conditions
    _tie(block, on, only if not more and isinstance(only, Junction) else Junction(True, conditions))
    return on


def _tie(block: Any, on: Expression, condition: Junction) -> None:
    """Write the rows that make ``on`` 1 if a condition holds and 0 otherwise."""
    parts = condition.parts
    if len(parts) > TOGETHER:  # joined in steps of nearly equal size
        size = -(-len(parts) // TOGETHER)
        chunks = [parts[k : k + size] for k in range(0, len(parts), size)]
        parts = tuple(c[0] if len(c) == 1 else Junction(condition.every, c) for c in chunks)
    expressions = []
    for part in parts:
        if isinstance(part, Quadratic):
            expressions.append(expression_of(part))
        else:
            expressions.append(block.parts_on.add())
            _tie(block, expressions[-1], part)
    for expression in expressions:
        block.on_rows.add(on <= expression if condition.every else on >= expression)
    total = sum(expressions)
    block.on_rows.add(on >= total - (len(expressions) - 1) if condition.every else on <= total)


def expression_of(polynomial: Quadratic) -> Expression:
    """Return a Pyomo expression of a polynomial."""
    of = polynomial.variables
    terms = [c * of[i] for i, c in polynomial.linear.items()]
    terms += [c * of[i] * of[j] for (i, j), c in polynomial.products.items()]
    return sum(terms, polynomial.constant)


def row_of(polynomial: Quadratic) -> Expression:
    """Return the same polynomial built directly from Pyomo's expression classes, faster for rules with thousands of rows."""
    of = polynomial.variables
    terms: list[Any] = [numeric.MonomialTermExpression((c, of[i])) for i, c in polynomial.linear.items()]
    if not polynomial.products:
        return numeric.LinearExpression([polynomial.constant, *terms] if polynomial.constant else terms)
    for (i, j), c in polynomial.products.items():
        terms.append(numeric.ProductExpression((numeric.MonomialTermExpression((c, of[i])), of[j])))
    return numeric.SumExpression([polynomial.constant, *terms] if polynomial.constant else terms)
