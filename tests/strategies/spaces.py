"""Hypothesis strategies: small spaces of every kind, as plain :class:`Drawn` values.

A drawn space has at most ``limit`` configurations before its rules. Bounds of rules are taken from the values that their
bodies really take, so that a rule usually cuts something and usually leaves something.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.fuzz.described import (
    Active,
    At,
    Choice,
    Clause,
    Drawn,
    Helper,
    Indicator,
    Is,
    Parameter,
    Position,
    Relation,
    Rule,
    Term,
    Value,
)
from tests.strategies.meaning import Meaning

COEFFICIENTS = (1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 0.1, 1.0, -1.0, 7.0)
NUMBERS = (-2, 0, 0.5, 1, 2, 3, 4, 16, 128, 1.5)
STRINGS = ("small", "middle", "large", "huge")
ODD = (None, True, 1, "relu", (1, 2), 0, False, 2.5, "None", ("a",), -3)
SMALL_EXPAND_LIMIT = 4


@st.composite
def drawn_spaces(draw: st.DrawFn, limit: int = 400, max_rules: int = 5) -> Drawn:
    """A space of discrete parameters (wide integers among them), with helpers and rules of every kind."""
    expand_limit = draw(st.sampled_from((64, SMALL_EXPAND_LIMIT)))
    parameters = _parameters(draw, limit, expand_limit)
    auxiliaries: list[Helper] = []
    for k in range(draw(st.sampled_from((0, 0, 1, 1, 2)))):
        low = draw(st.integers(-2, 3))
        auxiliaries.append(Helper(f"aux{k}", low, low + draw(st.integers(0, 5))))
    space = Drawn(tuple(parameters), tuple(auxiliaries), expand_limit=expand_limit)
    configs = Meaning(space).enumerate()
    rules: list[Rule] = []
    for k in range(min(max_rules, draw(st.sampled_from((0, 1, 1, 2, 2, 3, 3, 4, 5))))):
        relation = draw_relation(draw, space, configs, quadratic=True)
        if relation is None:
            continue
        direct = draw(st.integers(0, 4)) == 0
        when = () if direct else draw_condition(draw, space.parameters, expand_limit)
        rules.append(Rule(f"direct_{k}" if direct else f"rule {k}", relation, when, direct))
    space = replace(space, parts=tuple(rules))
    if draw(st.integers(0, 9)) < 4:
        space = _with_logic(draw, space, configs)
    return space


def expandable(p: Parameter, expand_limit: int) -> bool:
    """Whether a parameter has one indicator per value."""
    return Drawn((), expand_limit=expand_limit).has_indicators(p)


# -- parameters -----------------------------------------------------------------------------------------------------


def _parameters(draw: Any, limit: int, expand_limit: int) -> list[Parameter]:
    found: list[Parameter] = []
    size = 1
    if draw(st.integers(0, 5)) == 0:
        found += _ordered_modules(draw)
        size = len(Meaning(Drawn(tuple(found))).enumerate())
    kinds = ["integer", "integer", "ordinal", "strings", "categorical", "module"]
    if expand_limit == SMALL_EXPAND_LIMIT:
        kinds += ["wide", "wide"]
    for k in range(draw(st.sampled_from((0, 1, 1, 2) if found else (1, 2, 3, 3, 4, 4, 5)))):
        kind = draw(st.sampled_from(kinds))
        when = draw_condition(draw, found, expand_limit)
        new = _module(draw, f"p{k}", when) if kind == "module" else [_one(draw, f"p{k}", kind, when)]
        size *= sum(1 for _ in new[0].values) + sum(len(p.values) for p in new[1:]) + bool(when)
        if size > limit and found:
            break
        found += new
    return found


def _one(draw: Any, name: str, kind: str, when: tuple[Indicator, ...]) -> Parameter:
    if kind in ("integer", "wide"):
        count = draw(st.integers(1, 4)) if kind == "integer" else draw(st.integers(5, 9))
        low, step = draw(st.integers(-3, 4)), draw(st.sampled_from((1, 1, 2, 3)))
        high = low + (count - 1) * step + draw(st.integers(0, step - 1))
        log = low > 0 and draw(st.booleans())
        return Parameter(name, "integer", tuple(range(low, high + 1, step)), low, high, step, log, when)
    pool: tuple[Any, ...] = {"ordinal": NUMBERS, "strings": STRINGS, "categorical": ODD}[kind]
    values = draw(st.lists(st.sampled_from(range(len(pool))), min_size=1, max_size=4, unique=True))
    return Parameter(name, "ordinal" if kind == "strings" else kind, tuple(pool[l] for l in values), when=when)


def _module(draw: Any, name: str, when: tuple[Indicator, ...]) -> list[Parameter]:
    algorithms = ("none", "pca", "ica")[: draw(st.integers(1, 3))]
    hyper: list[Parameter] = []
    for algorithm in algorithms:
        if draw(st.booleans()) and len(hyper) < 2:
            kind = draw(st.sampled_from(("integer", "ordinal", "categorical")))
            hyper.append(replace(_one(draw, f"{name}.{algorithm}.k", kind, ()), owner=(name, algorithm)))
    return [Parameter(name, "module", algorithms, when=when), *hyper]


def _ordered_modules(draw: Any) -> list[Parameter]:
    count = draw(st.sampled_from((2, 2, 3)))
    members = [f"m{k}" for k in range(count)]
    found: list[Parameter] = []
    for member in members:
        algorithms = ("none", "pca")[: draw(st.integers(1, 2))]
        found.append(Parameter(member, "module", algorithms))
    return [*found, Parameter("order", "ordering", tuple(itertools.permutations(members)))]


# -- conditions and terms -------------------------------------------------------------------------------------------


def draw_condition(draw: Any, parameters: Any, expand_limit: int) -> tuple[Indicator, ...]:
    """No condition, one indicator or a list of two, over the parameters declared so far."""
    if not parameters or draw(st.integers(0, 9)) < 6:
        return ()
    return tuple(draw_indicator(draw, parameters, expand_limit) for _ in range(draw(st.sampled_from((1, 1, 2)))))


def draw_indicator(draw: Any, parameters: Any, expand_limit: int) -> Indicator:
    choices: list[Indicator] = []
    usable = [p for p in parameters if expandable(p, expand_limit)]
    if usable:
        p = draw(st.sampled_from(usable))
        levels = draw(st.lists(st.integers(0, len(p.values) - 1), min_size=1, max_size=2, unique=True))
        choices.append(Is(p.name, tuple(levels), draw(st.integers(0, 4)) == 0))
    conditional = [p for p in parameters if p.when or p.owner]
    if conditional:
        choices.append(Active(draw(st.sampled_from(conditional)).name))
    orders = [p for p in parameters if p.kind == "ordering"]
    if orders:
        members = sorted(orders[0].values[0])
        choices.append(At(orders[0].name, draw(st.sampled_from(members)), draw(st.integers(1, len(members)))))
    return draw(st.sampled_from(choices)) if choices else Active(parameters[0].name)


def draw_factor(draw: Any, space: Drawn, tuned_only: bool = False) -> Any:
    """A factor of a term: a value (helpers too), a position or an indicator; None if the space offers none."""
    numeric = [Value(p.name) for p in space.parameters if p.numeric]
    auxiliaries = [] if tuned_only else [Value(h.name) for h in space.auxiliaries]
    orders = [Position(p.name, m) for p in space.parameters if p.kind == "ordering" for m in p.values[0]]
    options: list[Any] = numeric * 2 + auxiliaries * 2 + orders
    if any(expandable(p, space.expand_limit) for p in space.parameters) and (
        not options or draw(st.integers(0, 2)) == 0
    ):
        return draw_indicator(draw, space.parameters, space.expand_limit)
    return draw(st.sampled_from(options)) if options else None


def draw_terms(draw: Any, space: Drawn, quadratic: bool, most: int = 4, tuned_only: bool = False) -> tuple[Term, ...]:
    terms = []
    for _ in range(draw(st.integers(1, most))):
        factors = [
            draw_factor(draw, space, tuned_only) for _ in range(draw(st.sampled_from((1, 1, 2))) if quadratic else 1)
        ]
        if quadratic and len(factors) == 2 and draw(st.integers(0, 5)) == 0:
            factors[1] = factors[0]
        if None not in factors:
            terms.append(Term(draw(st.sampled_from(COEFFICIENTS)), tuple(factors)))
    return tuple(terms)


def draw_relation(draw: Any, space: Drawn, configs: Any, quadratic: bool, tight: bool = False) -> Relation | None:
    """A relation whose bound is a value (or a little beside one) that its body takes; None if it would be constant."""
    terms = draw_terms(draw, space, quadratic)
    if not terms:
        return None
    bodies = np.unique(np.round(Meaning(space).bodies(terms, configs), 9))
    if len(bodies) < 2 or _degenerate(terms):
        return None
    at = draw(st.integers(0, len(bodies) - 1))
    sense = draw(st.sampled_from(("<=", ">=", "<=", ">=", "==")))
    bound = float(bodies[at])
    if sense != "==" and draw(st.booleans()):
        bound += 0.03125
    if not math.isfinite(bound):
        return None
    return Relation(terms, sense, bound)


def _degenerate(terms: tuple[Term, ...]) -> bool:
    """Whether terms may cancel: the same factors twice."""
    seen = [tuple(sorted(map(repr, t.factors))) for t in terms]
    return len(set(seen)) < len(seen)


# -- logic ----------------------------------------------------------------------------------------------------------


def _with_logic(draw: Any, space: Drawn, configs: Any) -> Drawn:
    usable = [p for p in space.parameters if expandable(p, space.expand_limit)]
    clauses: list[Clause] = []
    for _ in range(draw(st.integers(0, 2)) if usable else 0):
        kind = draw(st.sampled_from(("any", "implies", "xor")))
        count = 2 if kind == "xor" else draw(st.integers(2, 3))
        literals = []
        for _ in range(count):
            p = draw(st.sampled_from(usable))
            literals.append((p.name, draw(st.integers(0, len(p.values) - 1)), draw(st.booleans())))
        if len({(n, l) for n, l, _ in literals}) == count:
            clauses.append(Clause(f"logic_{len(clauses)}", kind, tuple(literals)))
    choices: list[Choice] = []
    if draw(st.integers(0, 3)):
        disjuncts = []
        for _ in range(2):
            listed = [draw_relation(draw, space, configs, quadratic=False) for _ in range(draw(st.integers(1, 2)))]
            disjuncts.append(tuple(r for r in listed if r is not None))
        if all(disjuncts):
            choices.append(Choice("choice_0", tuple(disjuncts)))
    return replace(space, parts=(*space.parts, *clauses, *choices))
