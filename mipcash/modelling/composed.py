"""Rules with functions and logic, converted exactly into rules of degree at most two.

A rule over ``abs``, ``maximum``, ``minimum`` or a formula is a tree of "all of" and "any of" whose leaves are relations
``body <= bound`` between polynomials:

    ... + c max(e, f) <= b     the two relations with e and with f in place of max(e, f): all of them if c > 0, any of them if c < 0
    abs(e) = max(e, -e),  min(e, f) = -max(-e, -f),  e >= b as -e <= -b,  e == b as both

A function thus needs no variable of its own, and no binary if it is bounded on its convex side. "All of" becomes several rules
of one name. "Any of" becomes, in this order:

    a clause        sum of the leaves' indicators >= 1; a leaf that depends on one discrete parameter alone *is* an indicator:
                    the sum of the levels at which it holds
    a condition     if only one leaf is no indicator: this leaf holds if all indicators are 0
    selectors       for several such leaves, an auxiliary binary s_j each: leaf j holds if s_j is 1, and the clause counts s_j

Negation reaches the leaves by De Morgan's laws. The negation of ``body <= b`` is the next value above ``b`` for a body over whole
numbers and reals with a step (``body >= b + 1`` for whole numbers), or the other levels if it depends on one discrete parameter.
Otherwise it is ``body >= b``: over reals, a rule and its negation share the bound, a set of measure zero.
Validation evaluates the leaves and never their big-M form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from pyomo.core.expr import numeric_expr as numeric
from pyomo.core.expr.relational_expr import RelationalExpression
from pyomo.core.expr.visitor import identify_mutable_parameters, identify_variables
from pyomo.environ import Var

from mipcash.errors import RuleError, RuleWarning, warn
from mipcash.modelling.conditions import expression_of, of_levels
from mipcash.modelling.declared import Declared, Number, OneHot
from mipcash.modelling.formulas import ALL, ANY, IMPLIES, NOT, XOR, Formula
from mipcash.modelling.quadratic import Quadratic, Variable, parse_quadratic
from mipcash.modelling.rules import Rule, is_within, slack_of, split_relation
from mipcash.modelling.wording import shortened, strict_ends, written

MOST_LEAVES = 256
"""Largest number of relations that one rule may be converted into."""
FINEST = 1000
"""Largest common denominator of the coefficients of discrete parameters in a rule that excludes its bound."""
CLOSED, OPEN, NEGATED = "closed", "open", "negated"
"""State of a bound: included, excluded, or that of a negation, which is included if the body contains reals."""
FUNCTIONS = (numeric.MaxExpression, numeric.MinExpression, numeric.AbsExpression)


@dataclass(frozen=True)
class Leaf:
    """``lower <= body <= upper``; ``strict`` excludes the bounds themselves."""

    body: Quadratic
    lower: float = -math.inf
    upper: float = math.inf
    strict: bool = False

    def holds(self, value: float) -> bool:
        slack = slack_of(self.body, self.lower, self.upper)
        return is_within(value, self.lower, self.upper, slack, (self.strict, self.strict))


@dataclass(frozen=True)
class Tree:
    """All (``every``) or at least one of some trees and leaves."""

    every: bool
    parts: tuple[Tree | Leaf, ...]


def is_composed(relation: Any) -> bool:
    """Return True if a rule contains functions or logic, or excludes its bounds."""
    if isinstance(relation, Formula):
        return True
    if not isinstance(relation, RelationalExpression):
        return False
    return any(strict_ends(relation)) or _has_functions(relation)


def mutable_params(relation: Any) -> list[Any]:
    """Return the mutable Params of Pyomo in a rule."""
    if isinstance(relation, Formula):
        return [param for part in relation.parts for param in mutable_params(part)]
    return list(identify_mutable_parameters(relation)) if isinstance(relation, RelationalExpression) else []


def at_levels(declaration: Declared, what: str, condition: Any) -> Any:
    """Return a condition of ``when=`` in which each relation over one discrete parameter is replaced by an indicator of levels.

    Such a relation, like any other, does not hold where a parameter of it is inactive, as in ``when=`` of a parameter. In the
    relation of a rule an inactive parameter is 0.
    """
    if isinstance(condition, Formula):
        return Formula(condition.kind, tuple(at_levels(declaration, what, part) for part in condition.parts))
    if not isinstance(condition, RelationalExpression):
        return condition
    indicator = None if _has_functions(condition) else of_levels(declaration, what, condition)
    if indicator is not None:
        return expression_of(indicator)
    used = {id(v) for v in identify_variables(condition, include_fixed=True)}
    owners = [g.on for g in declaration.groups if used & {id(v) for v in g.variables}]
    owners += [n.on for n in declaration.numbers if id(n.variable) in used]
    active = [expression_of(on) for on in owners if on is not None]
    return Formula(ALL, (condition, *active)) if active else condition


def _has_functions(relation: Any) -> bool:
    return any(next(_functions(a), None) is not None for a in relation.args)


def _functions(node: Any) -> Iterator[Any]:
    """Yield the outermost functions of an expression; parameters contain none."""
    if isinstance(node, FUNCTIONS):
        yield node
    elif not hasattr(node, "label") and getattr(node, "is_expression_type", lambda: False)():
        for argument in node.args:
            yield from _functions(argument)


class Composer:
    """Converter of one rule into its parts.

    Args:
        declaration: gives the domains of the parameters.
        name: the rule's name.
        text: the rule as its user wrote it.
        selector: creates a new auxiliary binary.
    """

    def __init__(self, declaration: Declared, name: str, text: str, selector: Callable[[], Variable]) -> None:
        self.declaration, self.name, self.what = declaration, name, f"rule {name!r}"
        self._text, self._selector = text, selector
        self._group_of: dict[int, OneHot] = {id(v): g for g in declaration.groups for v in g.variables}
        self._leaves = 0

    def parts(self, relation: Any, when: Sequence[Quadratic] = ()) -> list[Rule]:
        """Return the parts of a rule; none, with a warning, if it always holds.

        Raises:
            RuleError: the rule never holds, has too many parts, or a part that has no exact form.
        """
        tree = self._settled(self.tree(relation, True))
        if tree is False and when:  # one of the conditions must fail
            tree, when = self._settled(Tree(False, tuple(Leaf(w, upper=0.0) for w in when))), ()
        if tree is False:
            raise RuleError(f"{self.what} always fails, whatever the configuration; check its terms")
        if tree is True:
            told = f"{self.what} always holds, whatever the configuration; check its terms"
            warn(told, RuleWarning)
            return []
        return list(self._parts(tree, tuple(when)))

    # -- expressions to trees -----------------------------------------------------------------------------------

    def tree(self, part: Any, wanted: bool) -> Tree | Leaf:
        """Return the tree of a formula, relation or indicator that must hold (``wanted``) or must not."""
        if isinstance(part, Formula):
            return self._formula(part, wanted)
        if isinstance(part, RelationalExpression):
            return self._relation(part, wanted)
        indicator = parse_quadratic(part, self.what)
        self.declaration.refuse_foreign(self.what, indicator)
        low, high = self.declaration.interval(indicator)
        if not (_is_whole(indicator) and low >= 0 and high <= 1):
            raise RuleError(
                f"{self.what} uses {written(part)} as a condition, which is a number from {low:g} to {high:g}; compare it, "
                f"({shortened(written(part), 40)} >= 1), in brackets of its own"
            )
        return Leaf(indicator, lower=1.0) if wanted else Leaf(indicator, upper=0.0)

    def _formula(self, formula: Formula, wanted: bool) -> Tree | Leaf:
        parts = formula.parts
        if formula.kind == NOT:
            return self.tree(parts[0], not wanted)
        if formula.kind == IMPLIES:
            return Tree(not wanted, (self.tree(parts[0], not wanted), self.tree(parts[1], wanted)))
        if formula.kind == XOR:
            a, b = parts
            both = Tree(False, (self.tree(a, True), self.tree(b, wanted)))
            neither = Tree(False, (self.tree(a, False), self.tree(b, not wanted)))
            return Tree(True, (both, neither))
        assert formula.kind in (ALL, ANY)
        return Tree((formula.kind == ALL) == wanted, tuple(self.tree(p, wanted) for p in parts))

    def _relation(self, relation: Any, wanted: bool) -> Tree | Leaf:
        (body, lower, upper), strict = split_relation(self.name, relation, strict=True), strict_ends(relation)
        if not wanted and lower == upper:
            leaf = (
                self._by_levels(Leaf(parse_quadratic(body, self.what), lower, upper), False)
                if not is_composed(relation)
                else None
            )
            if leaf is not None:
                return leaf
        sides: list[Tree | Leaf] = []
        below, above = (
            OPEN if (end if wanted else lower == upper) else CLOSED if wanted or end else NEGATED for end in strict
        )
        if math.isfinite(upper):
            sides.append(self._below(body if wanted else -1 * body, upper if wanted else -upper, above))
        if math.isfinite(lower):
            sides.append(self._below(-1 * body if wanted else body, -lower if wanted else lower, below))
        if len(sides) == 2 and wanted and not any(strict) and all(isinstance(s, Leaf) for s in sides):
            return Leaf(parse_quadratic(body, self.what), lower, upper)
        return sides[0] if len(sides) == 1 else Tree(wanted, tuple(sides))

    def _below(self, expression: Any, upper: float, mode: str) -> Tree | Leaf:
        """Return the tree of ``expression <= upper``, or ``<``, with functions replaced by their branches."""
        found = list({id(f): f for f in _functions(expression)}.values())
        if not found:
            self._count()
            body = parse_quadratic(expression, self.what)
            self.declaration.refuse_foreign(self.what, body)
            return self._exact(Leaf(body, upper=upper, strict=mode != CLOSED), mode)
        function, every = self._first(expression, found)
        branches = tuple(
            self._below(_replaced(expression, {id(function): branch}), upper, mode) for branch in _branches(function)
        )
        return Tree(every, branches)

    def _first(self, expression: Any, found: Sequence[Any]) -> tuple[Any, bool]:
        """Return the function to replace first, preferably one with a choice of branch, and True if all its branches must hold."""
        stands: dict[int, Any] = {}
        for function in found:
            stands[id(function)] = Var()
            stands[id(function)].construct()
        outer = parse_quadratic(_replaced(expression, stands), self.what)
        convex: list[tuple[Any, bool]] = []
        ids = {id(v) for v in stands.values()}
        for function in found:
            sign = self._sign(outer, id(stands[id(function)]), ids, function)
            convex.append((function, (sign > 0) != isinstance(function, numeric.MinExpression)))
        return next((pair for pair in convex if not pair[1]), convex[0])

    def _sign(self, outer: Quadratic, i: int, functions: set[int], function: Any) -> float:
        """Return the sign of a function's factor in an expression.

        Raises:
            RuleError: the factor contains another function, or may be positive or negative.
        """
        linear: dict[int, float] = {}
        for (a, b), c in outer.products.items():
            if i in (a, b):
                other = b if a == i else a
                if other in functions:
                    raise RuleError(
                        f"{self.what} multiplies {written(function)} by a function; replace one of them by an auxiliary "
                        "variable that a rule defines"
                    )
                linear[other] = c
        factor = Quadratic(outer.linear.get(i, 0.0), linear, {}, outer.variables)
        named = {k: outer.variables[k] for k in linear}
        self.declaration.refuse_foreign(self.what, Quadratic(0.0, dict.fromkeys(named, 1.0), {}, named))
        low, high = self.declaration.interval(factor)
        if low < 0 < high:
            raise RuleError(
                f"{self.what} multiplies {written(function)} by a factor that may be positive or negative, with values in "
                f"[{low:g}, {high:g}]; restrict it to one sign, or write one rule for each sign"
            )
        return 1.0 if high > 0 else -1.0

    def _count(self) -> None:
        self._leaves += 1
        if self._leaves > MOST_LEAVES:
            raise RuleError(
                f"{self.what} has more than {MOST_LEAVES} combinations of its functions; name them by auxiliaries, "
                "t = space.auxiliary('t', 0, 9) with rules such as t >= a - b and t >= b - a for t == abs(a - b), and add those"
            )

    def _exact(self, leaf: Leaf, mode: str) -> Leaf:
        """Return an equivalent leaf that includes its bound.

        Raises:
            RuleError: the leaf excludes the bound of a real.
        """
        if not leaf.strict:
            return leaf
        known = self._by_levels(leaf, True)
        if known is not None:
            return known
        grid = self._grid(leaf.body)
        if grid is not None:
            start, step = leaf.body.constant + grid[0], grid[1]
            return Leaf(leaf.body, upper=start + step * (math.ceil((leaf.upper - start) / step - 1e-9) - 1))
        if mode == NEGATED and any(map(self._is_real, leaf.body.variables.values())):
            return replace(leaf, strict=False)
        raise RuleError(
            f"{self.what}, {shortened(self._text, 60)}, is or negates a relation of a real so that <, > or != is left, which a "
            "solver cannot represent. Write <= or >= with the bound that you want; <, > and != are for integers and for one "
            "discrete parameter"
        )

    def _grid(self, body: Quadratic) -> tuple[float, float] | None:
        """Return start and step of a grid that holds all values of a polynomial without its constant; None if none is found.

        The grid of a real with a step, ``low + k * step``, begins at ``low``. If the real is multiplied, or may be inactive, which
        counts as 0, the grid begins at 0, and ``low`` is a multiple of its step too.
        """
        start, units, sizes = 0.0, dict[int, list[float]](), list[float]()
        multiplied = {i for pair in body.products for i in pair}
        for i in body.ids:
            c, number = body.linear.get(i, 0.0), self._numbers.get(i)
            if not body.variables[i].is_continuous():
                units[i] = [1.0]
            elif number is None or not number.domain.step:
                return None
            else:
                step, low = float(number.domain.step), float(number.domain.low)
                begins = number.on is None and i not in multiplied
                units[i] = [step] if begins else [step, low]
                start += c * low if begins else 0.0
            sizes += [c * unit for unit in units[i]]
        sizes += [c * a * b for (i, j), c in body.products.items() for a in units[i] for b in units[j]]
        fractions = [Fraction(c).limit_denominator(FINEST) for c in sizes]
        multiple = math.lcm(*(f.denominator for f in fractions))
        near = all(abs(float(f) - c) <= 1e-12 * max(1.0, abs(c)) for f, c in zip(fractions, sizes, strict=True))
        return (start, 1.0 / multiple) if near and multiple <= FINEST else None

    @cached_property
    def _numbers(self) -> dict[int, Number]:
        return {id(n.variable): n for n in self.declaration.numbers}

    def _is_real(self, variable: Variable) -> bool:
        """Return True if a variable takes all values of an interval."""
        number = self._numbers.get(id(variable))
        return bool(variable.is_continuous()) and not (number is not None and number.domain.step)

    # -- leaves that are indicators -----------------------------------------------------------------------------

    def _by_levels(self, leaf: Leaf, wanted: bool) -> Leaf | None:
        """Return a leaf over one discrete parameter as the sum of the levels at which it holds (or not), else None."""
        if not leaf.body.ids:
            return None
        groups = {id(self._group_of.get(i)): self._group_of.get(i) for i in leaf.body.ids}
        (group,) = groups.values() if len(groups) == 1 else (None,)
        if group is None:
            return None
        levels = {id(v): v for v in group.variables}
        holding = {i: v for i, v in levels.items() if leaf.holds(self._at(leaf.body, i)) == wanted}
        off = group.on is not None and leaf.holds(leaf.body.constant) == wanted
        constant, linear = 0.0, dict.fromkeys(holding, 1.0)
        if len(holding) == len(levels) and (off or group.on is None):
            constant, linear = 1.0, {}
        elif off:  # 1 - the levels at which it does not hold
            constant, linear = 1.0, {i: -1.0 for i in levels if i not in holding}
        return Leaf(Quadratic(constant, linear, {}, {i: levels[i] for i in linear}), lower=1.0)

    @staticmethod
    def _at(body: Quadratic, i: int) -> float:
        return body.constant + body.linear.get(i, 0.0) + body.products.get((i, i), 0.0)

    def _literal(self, part: Tree | Leaf) -> Quadratic | None:
        """Return a part as a 0/1 polynomial, or None if it is not one."""
        if isinstance(part, Tree):
            return None
        known = self._by_levels(part, True)
        if known is not None:
            return known.body
        low, high = self.declaration.interval(part.body)
        if part.body.products or not (_is_whole(part.body) and low >= 0 and high <= 1):
            return None
        at = [part.holds(0.0), part.holds(1.0)]
        return part.body if at == [False, True] else _complement(part.body) if at == [True, False] else None

    # -- trees to parts -----------------------------------------------------------------------------------------

    def _settled(self, tree: Tree | Leaf) -> Tree | Leaf | bool:
        """Return the tree without parts that always or never hold, nested trees of one kind merged; a bool if no part is left."""
        if isinstance(tree, Leaf):
            known = self._by_levels(tree, True) or tree
            return known.holds(known.body.constant) if not known.body.ids else tree
        kept: list[Tree | Leaf] = []
        for part in map(self._settled, tree.parts):
            if isinstance(part, bool):
                if part != tree.every:
                    return part
            elif isinstance(part, Tree) and part.every == tree.every:
                kept += part.parts
            else:
                kept.append(part)
        if not kept:
            return tree.every
        return kept[0] if len(kept) == 1 else Tree(tree.every, tuple(kept))

    def _rule(self, body: Quadratic, lower: float, upper: float, when: tuple[Quadratic, ...]) -> Rule:
        return Rule(self.name, body, lower, upper, when, 0.0, self._text)

    def _parts(self, tree: Tree | Leaf, when: tuple[Quadratic, ...]) -> Iterator[Rule]:
        if isinstance(tree, Leaf):
            shift = tree.body.constant
            yield self._rule(replace(tree.body, constant=0.0), tree.lower - shift, tree.upper - shift, when)
        elif tree.every:
            for part in tree.parts:
                yield from self._parts(part, when)
        else:
            yield from self._any(tree.parts, when)

    def _any(self, parts: Sequence[Tree | Leaf], when: tuple[Quadratic, ...]) -> Iterator[Rule]:
        literals, others = list[Quadratic](), list[Tree | Leaf]()
        for part in parts:
            literal = self._literal(part)
            others.append(part) if literal is None else literals.append(literal)
        if len(others) == 1:
            yield from self._parts(others[0], (*when, *map(_complement, literals)))
            return
        selectors = [self._indicator() for _ in range(1 if len(others) == 2 and not literals else len(others))]
        if len(selectors) == 1:
            selectors.append(_complement(selectors[0]))
        else:
            clause = _sum([*literals, *selectors])
            yield self._rule(replace(clause, constant=0.0), 1.0 - clause.constant, math.inf, when)
        for selector, part in zip(selectors, others, strict=True):
            yield from self._parts(part, (*when, selector))

    def _indicator(self) -> Quadratic:
        variable = self._selector()
        return Quadratic(0.0, {id(variable): 1.0}, {}, {id(variable): variable})


def _branches(function: Any) -> list[Any]:
    arguments = list(function.args)
    return [arguments[0], -1 * arguments[0]] if isinstance(function, numeric.AbsExpression) else arguments


def _replaced(node: Any, by: Mapping[int, Any]) -> Any:
    """Return an expression with some nodes replaced, by id."""
    if id(node) in by:
        return by[id(node)]
    if hasattr(node, "label") or not getattr(node, "is_expression_type", lambda: False)():
        return node
    arguments = [_replaced(a, by) for a in node.args]
    if all(a is b for a, b in zip(arguments, node.args, strict=True)):
        return node
    return arguments[0] if node.is_named_expression_type() else node.create_node_with_local_data(tuple(arguments))


def _is_whole(body: Quadratic) -> bool:
    """Return True if a polynomial without its constant takes whole numbers only."""
    whole = all(float(c).is_integer() for c in (*body.linear.values(), *body.products.values()))
    return whole and not any(body.variables[i].is_continuous() for i in body.ids)


def _complement(indicator: Quadratic) -> Quadratic:
    linear = {i: -c for i, c in indicator.linear.items()}
    return Quadratic(1.0 - indicator.constant, linear, {}, indicator.variables)


def _sum(polynomials: Sequence[Quadratic]) -> Quadratic:
    constant, linear, variables = 0.0, dict[int, float](), dict[int, Variable]()
    for p in polynomials:
        constant += p.constant
        variables |= p.variables
        for i, c in p.linear.items():
            linear[i] = linear.get(i, 0.0) + c
    linear = {i: c for i, c in linear.items() if c}
    return Quadratic(constant, linear, {}, {i: variables[i] for i in linear})
