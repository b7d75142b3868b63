"""Shapes of rules: pairs, sums, cardinalities, forbidden combinations, products, logic, disjunctions, reals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.fuzz.described import (
    Active,
    At,
    Choice,
    Clause,
    Condition,
    Factor,
    Is,
    Join,
    Parameter,
    Position,
    Relation,
    Term,
    Value,
)
from tests.fuzz.sketch import CUT, Sketch
from tests.fuzz.terms import Indicator

Terms = tuple[Term, ...]
Shape = Callable[[Sketch], Terms]


# -- factors --------------------------------------------------------------------------------------------------------


def numbers(sketch: Sketch, reals: bool = False, auxiliaries: bool = True) -> list[Factor]:
    """Return values of reals only, or of other numeric parameters, auxiliary variables and positions."""
    if reals:
        return [Value(p.name) for p in sketch.parameters if p.kind == "real"]
    listed: list[Factor] = [Value(p.name) for p in sketch.parameters if p.numeric and p.kind != "real"]
    listed += [Value(h.name) for h in sketch.auxiliaries] if auxiliaries else []
    orders = [p for p in sketch.parameters if p.kind == "ordering"]
    return listed + [Position(p.name, m) for p in orders for m in sorted(p.values[0])]


def indicator(sketch: Sketch) -> Indicator | None:
    """Return a random 0/1 factor; None if the space has none."""
    options: list[Indicator] = []
    usable = expandable(sketch)
    if usable:
        p = sketch.one(usable)
        levels = tuple(sorted(sketch.some(list(range(len(p.values))), sketch.one((1, 1, 2)))))
        if len(levels) < len(p.values):
            options.append(Is(p.name, levels, sketch.chance(0.15)))
    conditional = [p for p in sketch.parameters if p.when or p.owner]
    if conditional and sketch.chance(0.4) and sketch.origin != "configspace":
        options.append(Active(sketch.one(conditional).name))
    orders = [p for p in sketch.parameters if p.kind == "ordering"]
    if orders and sketch.chance(0.5):
        members = sorted(orders[0].values[0])
        options.append(At(orders[0].name, sketch.one(members), int(sketch.rng.integers(1, len(members) + 1))))
    return sketch.one(options) if options else None


def expandable(sketch: Sketch) -> list[Parameter]:
    """Return the parameters that have indicators."""
    return [p for p in sketch.parameters if p.name not in sketch.gridded and sketch.drawn.has_indicators(p)]


def indicators(sketch: Sketch, count: int) -> list[Indicator]:
    """Return up to ``count`` indicators of different parameters."""
    found: dict[str, Indicator] = {}
    for _ in range(3 * count):
        drawn = indicator(sketch)
        if drawn is not None and len(found) < count:
            found.setdefault(drawn.name, drawn)
    return list(found.values())


def condition(sketch: Sketch, often: float = 0.3) -> tuple[Condition, ...]:
    """Return conditions: usually none, else one or two indicators, or formulas if the sketch has formulas."""
    if not sketch.chance(often):
        return ()
    if sketch.formulas:
        drawn = (formula(sketch, sketch.one((1, 2, 3)), (2, 2, 3, 8)) for _ in range(sketch.one((1, 1, 2))))
        return tuple(f for f in drawn if f is not None)
    return tuple(indicators(sketch, sketch.one((1, 1, 2))))


def formula(sketch: Sketch, depth: int, counts: Sequence[int] = (2,)) -> Condition | None:
    """Return a random formula, up to ``depth`` levels deep; its parts may overlap, repeat and contradict each other."""
    if not depth or sketch.chance(0.3):
        leaf = indicator(sketch)
        return Join("~", (Is(leaf.name, leaf.levels),)) if isinstance(leaf, Is) and leaf.negated else leaf
    kind = sketch.one(("|", "|", "|", "&", "&", "~"))
    count = 1 if kind == "~" else sketch.one(counts)
    parts = [f for f in (formula(sketch, min(depth - 1, 9 - count)) for _ in range(count)) if f is not None]
    if kind != "~" and parts and sketch.chance(0.2):
        parts.append(sketch.one(parts))
    return None if not parts else parts[0] if kind != "~" and len(parts) < 2 else Join(kind, tuple(parts))


def normal_form(sketch: Sketch) -> Condition | None:
    """Return a random condition in disjunctive normal form, as ConfigSpace supports it."""
    parts: list[Condition] = []
    for _ in range(sketch.one((1, 2, 2, 3))):
        drawn = [i for i in indicators(sketch, sketch.one((1, 2, 2))) if isinstance(i, Is)]
        listed = tuple(replace(i, negated=i.negated and len(i.levels) == 1) for i in drawn)
        parts += [Join("&", listed)] if len(listed) > 1 else listed
    return None if not parts else parts[0] if len(parts) == 1 else Join("|", tuple(parts))


def terms(sketch: Sketch, products: Sequence[Sequence[Factor]]) -> Terms:
    """Return terms with random coefficients."""
    drawn = sketch.coefficients(len(products))
    return tuple(Term(c, tuple(factors)) for c, factors in zip(drawn, products, strict=True))


# -- shapes ---------------------------------------------------------------------------------------------------------


def pair(sketch: Sketch) -> Terms:
    """Two numbers."""
    return terms(sketch, [[f] for f in sketch.some(numbers(sketch), 2)])


def linear(sketch: Sketch) -> Terms:
    """Two to four numbers, and perhaps an indicator."""
    chosen: list[Factor] = sketch.some(numbers(sketch), sketch.one((2, 3, 3, 4)))
    if sketch.chance(0.4):
        chosen += indicators(sketch, 1)
    return terms(sketch, [[f] for f in chosen])


def cardinality(sketch: Sketch) -> Terms:
    """Number of indicators that hold."""
    return tuple(Term(1.0, (i,)) for i in indicators(sketch, sketch.one((2, 3, 4))))


def product(sketch: Sketch) -> Terms:
    """One or two products, and perhaps a number."""
    pool = numbers(sketch)
    listed: list[list[Factor]] = []
    for _ in range(sketch.one((1, 1, 2))):
        second = indicators(sketch, 1) if sketch.chance(0.3) else sketch.some(pool, 1)
        factors = [*sketch.some(pool, 1), *second]
        if factors not in listed and factors[::-1] not in listed:
            listed.append(factors)
    if pool and sketch.chance(0.5):
        listed.append([sketch.one(pool)])
    return terms(sketch, listed)


def real_sum(sketch: Sketch) -> Terms:
    """Reals, and perhaps a discrete number or an indicator."""
    reals = numbers(sketch, reals=True)
    chosen: list[Factor] = sketch.some(reals, sketch.one((1, 2, 2, 3)))
    if sketch.chance(0.5):
        chosen += sketch.some(numbers(sketch), 1) if sketch.chance(0.6) else indicators(sketch, 1)
    return terms(sketch, [[f] for f in chosen])


def mixture(sketch: Sketch) -> Terms:
    """Sum of the reals with coefficient 1."""
    return tuple(Term(1.0, (f,)) for f in numbers(sketch, reals=True))


def real_product(sketch: Sketch) -> Terms:
    """Product of a real and a discrete factor, and further terms."""
    reals = numbers(sketch, reals=True)
    discrete = numbers(sketch, auxiliaries=False)
    first = sketch.one(reals)
    second = sketch.some(discrete, 1) if discrete and sketch.chance(0.7) else indicators(sketch, 1)
    listed: list[list[Factor]] = [[first, *second]]
    others = [f for f in [*reals, *discrete] if [f] not in listed]
    listed += [[f] for f in sketch.some(others, sketch.one((0, 1, 2)))]
    return terms(sketch, listed)


def product_of_reals(sketch: Sketch) -> Terms:
    """Product of two reals or square of a real, and perhaps further numbers."""
    reals = [Value(name) for name in sketch.gridded]
    first, second = sketch.one(reals), sketch.one(reals)
    others = [[f] for f in sketch.some(numbers(sketch), sketch.one((0, 0, 1, 2)))]
    return terms(sketch, [[first, second], *others])


SHAPES: dict[str, Shape] = {
    "pair": pair,
    "linear": linear,
    "cardinality": cardinality,
    "product": product,
    "real sum": real_sum,
    "real product": real_product,
    "product of reals": product_of_reals,
}


# -- logic ----------------------------------------------------------------------------------------------------------


def clause(sketch: Sketch) -> Clause | None:
    """Return a LogicalConstraint over two or three levels."""
    usable, forbidden = expandable(sketch), sketch.origin == "configspace"
    kind = "any" if forbidden else sketch.one(("any", "implies", "xor"))
    literals: dict[tuple[str, int], bool] = {}
    for _ in range(2 if kind == "xor" else sketch.one((2, 3))):
        if usable:
            p = sketch.one(usable)
            least = (
                1 if forbidden and not literals else 0
            )  # ConfigSpace requires its default, all first values, to be legal
            literals[p.name, int(sketch.rng.integers(least, len(p.values)))] = not forbidden and sketch.chance(0.6)
    if len(literals) < 2:
        return None
    return Clause(f"logic_{len(sketch.known.judged)}", kind, tuple((n, l, w) for (n, l), w in literals.items()))


def choice(sketch: Sketch, shapes: Sequence[str]) -> Choice | None:
    """Return a Disjunction of two or three lists of relations, each of which cuts the legal set."""
    disjuncts: list[tuple[Relation, ...]] = []
    for _ in range(sketch.one((2, 2, 3))):
        relations = []
        for _ in range(sketch.one((1, 1, 2))):
            drawn = distinct(SHAPES[sketch.one(list(shapes))](sketch))
            relation = sketch.relation(drawn, CUT, equal=sketch.chance(0.1)) if drawn else None
            relations += [relation] if relation is not None else []
        disjuncts += [tuple(relations)] if relations else []
    if len(disjuncts) < 2:
        return None
    made = Choice(f"choice_{len(sketch.known.judged)}", tuple(disjuncts))
    if sketch.origin != "pyomo":
        return made
    ends = range(len(disjuncts))
    fixed = tuple(sketch.one((None, None, None, True, False)) for _ in ends)
    implied = tuple(sketch.some([(i, j) for i in ends for j in ends if i != j], sketch.one((0, 0, 1))))
    return replace(made, exactly=sketch.chance(0.6), fixed=fixed, implied=implied)


def distinct(drawn: Terms) -> Terms:
    """Return the terms, or no terms if the same factors occur twice and might cancel."""
    seen = [tuple(sorted(map(repr, t.factors))) for t in drawn]
    return drawn if len(set(seen)) == len(seen) else ()
