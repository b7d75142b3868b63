"""Kinds of drawn spaces. Space k of a seed is reproducible: it depends only on ``default_rng([seed, k])``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tests.fuzz.described import Drawn, Helper, Parameter, Term, Value
from tests.fuzz.parts import (
    ATTEMPTS,
    HARD,
    HIDDEN_ATTEMPTS,
    MIXED_ROWS,
    ODD,
    PLAIN,
    STRINGS,
    gridded,
    integer,
    module,
    narrow,
    real,
    ring,
    rules,
    stepped,
    wide,
)
from tests.fuzz.shapes import SHAPES, choice, clause, condition, distinct, indicators, mixture, normal_form
from tests.fuzz.sketch import CUT, EMPTY, FEW, Sketch
from tests.fuzz.table import LARGEST, TooLargeError
from tests.fuzz.truth import Truth


@dataclass(frozen=True)
class Case:
    """Space ``k`` of a seed, and its legal assignments by brute force.

    Attributes:
        knives: number of rules that were redrawn because they made an assignment borderline.
        gridded: parameters that ``truth`` represents by a grid of values; an empty grid does not prove the space empty.
    """

    k: int
    kind: str
    drawn: Drawn
    truth: Truth
    knives: int
    gridded: tuple[str, ...] = ()


def draw(seed: int, k: int, kinds: Sequence[str] = (), most: int = LARGEST, reals: bool = True) -> Case:
    """Draw space k of a seed.

    Args:
        seed: the seed.
        k: number of the space.
        kinds: kinds to draw from; empty: any kind.
        most: largest number of assignments.
        reals: whether the space may have reals.
    """
    rng = np.random.default_rng([seed, k])
    listed = [name for name in KINDS if not kinds or name in kinds]
    shares = np.array([KINDS[name][0] for name in listed])
    kind = listed[int(rng.choice(len(listed), p=shares / shares.sum()))]
    knives = 0
    while True:
        sketch = Sketch(rng, plain=bool(rng.random() < PLAIN), most=most, reals=reals)
        try:
            KINDS[kind][1](sketch)
        except TooLargeError:
            continue
        knives += sketch.knives
        if sketch.known.judged and sketch.parameters:
            parameters = tuple(sketch.gridded.get(p.name, p) for p in sketch.parameters)
            drawn = replace(sketch.drawn, parameters=parameters)
            return Case(k, kind, drawn, sketch.known, knives, tuple(sketch.gridded))


# -- kinds ----------------------------------------------------------------------------------------------------------


def cycles(sketch: Sketch) -> None:
    """Rules of two variables each, in a triangle or a longer cycle."""
    count = sketch.one((3, 3, 3, 4, 4, 5))
    for v in range(count):
        integer(sketch, f"v{v}", int(sketch.rng.integers(3, {3: 13, 4: 9, 5: 6}[count])), steps=False)
    sketch.settle()
    names = [p.name for p in sketch.parameters]
    if sketch.chance(0.5):
        ring(sketch, [Value(name) for name in sketch.some(names, count)])
        return
    order = sketch.some(names, count)
    edges = [(order[i], order[(i + 1) % count]) for i in range(count)]
    for a, b in edges[:-1]:
        for _ in range(4):
            if sketch.rule(_edge(sketch, a, b), CUT, equal=sketch.chance(0.1)):
                break
    closing = sketch.one((EMPTY, EMPTY, FEW, CUT, CUT))
    for attempt in range(ATTEMPTS):
        hidden = closing == EMPTY and attempt < HIDDEN_ATTEMPTS
        a, b = edges[-1] if sketch.chance(0.7) else tuple(sketch.some(names, 2))
        if sketch.rule(_edge(sketch, a, b), closing, equal=sketch.chance(0.15), hidden=hidden):
            break
        if closing == FEW:
            sketch.rule(_edge(sketch, *sketch.some(names, 2)), CUT)


def _edge(sketch: Sketch, a: str, b: str) -> tuple[Term, ...]:
    first, second = sketch.coefficients(2)
    if sketch.chance(0.6):
        first, second = (np.sign(first) * abs(first), np.sign(second) * abs(first))
    return Term(float(first), (Value(a),)), Term(float(second), (Value(b),))


def products(sketch: Sketch) -> None:
    """Equalities, cardinalities, products and forbidden combinations."""
    for v in range(sketch.one((3, 3, 4))):
        narrow(sketch, f"v{v}")
    integer(sketch, "w", int(sketch.rng.integers(3, 8)))
    sketch.settle()
    for _ in range(sketch.one((0, 1, 1))):
        chosen = indicators(sketch, sketch.one((2, 3)))
        sketch.rule(tuple(Term(1.0, (i,)) for i in chosen), CUT) if len(chosen) > 1 else None
    rules(sketch, ("pair", "linear", "cardinality", "product", "product"), sketch.one((1, 2, 3)), often=0.15)


def conditional(sketch: Sketch) -> None:
    """Conditional parameters under one and several conditions, modules, an ordering."""
    if sketch.chance(0.4):
        members = [f"m{m}" for m in range(sketch.one((2, 3)))]
        for name in members:
            module(sketch, name, hyper=sketch.chance(0.3))
        sketch.parameters.append(Parameter("order", "ordering", tuple(itertools.permutations(members))))
    else:
        module(sketch, "m")
    for v in range(sketch.one((2, 3))):
        when = tuple(indicators(sketch, sketch.one((1, 1, 2)))) if sketch.chance(0.7) else ()
        narrow(sketch, f"v{v}", when)
    integer(sketch, "w", int(sketch.rng.integers(3, 7)))
    sketch.largest = 6000
    sketch.settle()
    rules(sketch, ("pair", "linear", "cardinality", "product"), sketch.one((1, 2, 3)), often=0.4)


def auxiliaries(sketch: Sketch) -> None:
    """Auxiliary variables in chains of equations and in products."""
    for v in range(sketch.one((2, 2, 3))):
        integer(sketch, f"v{v}", int(sketch.rng.integers(3, 7)))
    if sketch.chance(0.4):
        narrow(sketch, "c")
    names = ["u", "t"] if sketch.chance(0.6) else ["u"]
    low = int(sketch.rng.integers(-3, 2))
    sketch.auxiliaries += [Helper(n, low, low + int(sketch.rng.integers(2, 8))) for n in names]
    sketch.largest = 12_000
    sketch.settle()
    if sketch.chance(0.5):
        chain = ["v0", *names, "v1"]
        for a, b in itertools.pairwise(chain):
            size = sketch.one((1.0, 1.0, 0.1, 1e3))
            sketch.rule((Term(size, (Value(a),)), Term(-size, (Value(b),))), CUT, equal=True)
    rules(sketch, ("pair", "linear", "linear", "product"), sketch.one((1, 2)), often=0.1)


def logic(sketch: Sketch) -> None:
    """Disjunctions over integers or reals, and LogicalConstraints."""
    reals = sketch.one((0, 0, 0, 1, 2))
    for v in range(1 if reals else sketch.one((2, 3))):
        integer(sketch, f"v{v}", int(sketch.rng.integers(3, 5 if reals else 8)))
    narrow(sketch, "c")
    for x in range(reals):
        real(sketch, f"x{x}", ORDINARY)
    sketch.largest = MIXED_ROWS if reals else LARGEST
    sketch.settle()
    shapes = ("real sum", "real sum", "linear") if reals else ("pair", "linear")
    _logic(sketch, shapes)
    rules(sketch, (*shapes, "cardinality"), sketch.one((0, 1, 2)), often=0.15)


def _logic(sketch: Sketch, shapes: Sequence[str]) -> None:
    for _ in range(sketch.one((1, 1, 2))):
        made = choice(sketch, shapes)
        if made is not None:
            sketch.add(made)
    for _ in range(sketch.one((0, 1, 2))):
        drawn = clause(sketch)
        if drawn is not None:
            sketch.add(drawn)


def wide_integers(sketch: Sketch) -> None:
    """Integers with more than ``expand_limit`` levels, some conditional, some because the limit is small."""
    few = sketch.chance(0.5)
    sketch.expand_limit = 4 if few else 64
    integer(sketch, "v", int(sketch.rng.integers(2, 5)))
    if sketch.chance(0.6):
        narrow(sketch, "c", most=4)
    for w in range(sketch.one((2, 3)) if few else sketch.one((1, 1, 2))):
        when = tuple(indicators(sketch, 1)) if sketch.chance(0.35) else ()
        wide(sketch, f"w{w}", when, 9 if few else 101)
    sketch.settle()
    rules(sketch, ("pair", "linear", "linear", "product"), sketch.one((1, 2, 3)), often=0.25)


def stepped_reals(sketch: Sketch) -> None:
    """Reals with a step, some conditional, with at most or more than ``expand_limit`` values."""
    sketch.expand_limit = sketch.one((4, 4, 64))
    stepped(sketch, "v", int(sketch.rng.integers(2, 5)))
    if sketch.chance(0.6):
        narrow(sketch, "c", most=4)
    for w in range(sketch.one((1, 2, 2))):
        when = tuple(indicators(sketch, 1)) if sketch.chance(0.4) else ()
        stepped(sketch, f"w{w}", int(sketch.rng.integers(5, 12)), when)
    if sketch.chance(0.3):
        wide(sketch, "n", (), sketch.expand_limit + 3)
    sketch.settle()
    rules(sketch, ("pair", "linear", "linear", "product"), sketch.one((1, 2, 3)), often=0.25)


UNIT = ((0.0, 1.0),)
ORDINARY = ((0.0, 1.0), (-1.0, 1.0), (0.0, 10.0), (0.5, 2.5), (-5.0, 0.0))
HUGE = ((1e-3, 1e6), (0.0, 1e6), (0.0, 1e4), (-1e6, 1e6), (0.0, 1.0))
EXTREME = ((1e-6, 1e9), (0.0, 1e9), (-1e9, 1e9), (1e-3, 1e6))
TINY = ((0.0, 1e-6), (1.0, 1.000001), (0.0, 1e-9), (-1e-6, 0.0), (0.0, 1.0))


def mixtures(sketch: Sketch) -> None:
    """Reals that sum to one, and further linear rules."""
    for v in range(sketch.one((0, 1, 1, 2))):
        narrow(sketch, f"v{v}", most=4)
    count = sketch.one((2, 3, 3, 4))
    for x in range(count):
        when = tuple(indicators(sketch, 1)) if sketch.chance(0.15) else ()
        real(sketch, f"x{x}", UNIT if sketch.chance(0.7) else ORDINARY, when)
    sketch.largest = MIXED_ROWS
    sketch.settle()
    if sketch.chance(0.7):
        sketch.rule(mixture(sketch), CUT, equal=True)
    rules(sketch, ("real sum", "real sum", "linear"), sketch.one((1, 2)), often=0.2)


def real_products(sketch: Sketch) -> None:
    """Products of a real and a discrete factor, which may be a wide integer."""
    sketch.expand_limit = sketch.one((4, 64))
    integer(sketch, "v", int(sketch.rng.integers(2, 5)))
    narrow(sketch, "c", most=4)
    if sketch.expand_limit == 4 and sketch.chance(0.5):
        wide(sketch, "w", (), 7)
    for x in range(sketch.one((1, 2, 2))):
        when = tuple(indicators(sketch, 1)) if sketch.chance(0.3) else ()
        real(sketch, f"x{x}", ORDINARY, when)
    sketch.largest = 2 * MIXED_ROWS
    sketch.settle()
    rules(sketch, ("real product", "real product", "real sum", "linear"), sketch.one((1, 2, 2)), often=0.2)


def everything(sketch: Sketch) -> None:
    """Conditional parameters, wide integers, an auxiliary variable, reals and logic in one space."""
    sketch.expand_limit = 4
    module(sketch, "m", hyper=sketch.chance(0.5))
    integer(sketch, "v", int(sketch.rng.integers(2, 5)))
    if sketch.chance(0.5):
        wide(sketch, "w", tuple(indicators(sketch, 1)) if sketch.chance(0.4) else (), 6)
    real(sketch, "x", ORDINARY, tuple(indicators(sketch, 1)) if sketch.chance(0.5) else ())
    if sketch.chance(0.6):
        sketch.auxiliaries.append(Helper("u", 0, int(sketch.rng.integers(1, 4))))
    sketch.largest = 3 * MIXED_ROWS
    sketch.settle()
    if sketch.chance(0.6):
        _logic(sketch, ("pair", "real sum"))
    rules(sketch, ("pair", "linear", "real sum", "real product", "cardinality"), sketch.one((1, 2, 2)), often=0.25)


def formulas(sketch: Sketch) -> None:
    """Parameters of every kind under nested formulas, some of which test whether another parameter is active."""
    sketch.formulas, sketch.expand_limit = True, sketch.one((0, 1, 3, 64))
    for c in range(sketch.one((2, 2, 3))):
        narrow(sketch, f"c{c}", most=3)
    for v in range(sketch.one((2, 3, 4))):
        when, kind = condition(sketch, 0.9), sketch.one(("narrow", "narrow", "real", "wide", "module"))
        if kind == "real":
            real(sketch, f"v{v}", ORDINARY, when)
        elif kind == "wide" and sketch.expand_limit < 64:
            wide(sketch, f"v{v}", when, 6)
        elif kind == "module":
            module(sketch, f"v{v}", sketch.chance(0.3), when)
        else:
            narrow(sketch, f"v{v}", when, 3)
    sketch.largest = 4 * MIXED_ROWS if sketch.drawn.reals else 3000
    sketch.settle()
    rules(sketch, ("pair", "linear", "real sum", "cardinality"), sketch.one((1, 1, 2)), often=0.4)


def large_ranges(sketch: Sketch) -> None:
    """Conditional reals with ranges from 1e-9 to 1e9, where a large big-M or a loose tolerance gives wrong answers.

    Half of the spaces also have an integer with a single value and an integer with large steps, up to 1e15.
    """
    narrow(sketch, "c", most=3)
    if sketch.chance(0.5):
        sketch.expand_limit = sketch.one((0, 1, 3))
        sketch.parameters.append(Parameter("one", "integer", (4,), 4, 4))
        step, low = sketch.one((10**3, 10**6, 10**9, 10**14)), sketch.one((0, -7, 1))
        values = range(low, low + int(sketch.rng.integers(3, 9)) * step, step)
        sketch.parameters.append(Parameter("w", "integer", values, low, values[-1], step))
    for x in range(sketch.one((1, 2, 3))):
        when = tuple(indicators(sketch, 1)) if sketch.chance(0.5) else ()
        real(sketch, f"x{x}", sketch.one((HUGE, TINY, EXTREME)), when)
    sketch.largest = MIXED_ROWS
    sketch.settle()
    rules(sketch, ("real sum", "real sum", "linear", "cardinality"), sketch.one((1, 2, 3)), often=0.3)


def products_of_reals(sketch: Sketch) -> None:
    """Products of two reals and squares of a real; the legal set is known on a grid only."""
    ranges = sketch.one((UNIT, ORDINARY, ORDINARY, EXTREME, TINY))
    if sketch.chance(0.7):
        narrow(sketch, "c", most=3)
    for x in range(2):
        low, high = sketch.one(ranges)
        when = tuple(indicators(sketch, 1)) if sketch.chance(0.2) else ()
        gridded(
            sketch, f"x{x}", Parameter(f"x{x}", "real", (), low, high, log=low > 0 and sketch.chance(0.2), when=when)
        )
    if sketch.chance(0.3):
        step, low = sketch.one((1, 1, 7, 10**6)), sketch.one((0, 1, -5))
        high = low + sketch.one((10**3, 10**6, 10**8)) * step
        gridded(sketch, "w", Parameter("w", "integer", range(low, high + 1, step), low, high, step))
    sketch.settle()
    for _ in range(sketch.one((1, 2, 2))):
        terms = distinct(SHAPES["product of reals"](sketch))
        if terms:
            sketch.rule(terms, sketch.one((CUT, CUT, FEW)), condition(sketch, 0.2))
    rules(sketch, ("pair", "linear"), sketch.one((0, 0, 1)))


def from_pyomo(sketch: Sketch) -> None:
    """A Pyomo model: stepped integers, reals, fixed variables, auxiliary variables, and disjuncts with indicators."""
    sketch.origin, sketch.expand_limit = "pyomo", sketch.one((1, 3, 64))
    for v in range(sketch.one((2, 2, 3))):
        integer(sketch, f"v{v}", int(sketch.rng.integers(2, 6)))
    for x in range(sketch.one((0, 0, 1, 2))):
        real(sketch, f"x{x}", ORDINARY)
    sketch.parameters = [replace(p, log=False) for p in sketch.parameters]
    if sketch.chance(0.4):
        sketch.auxiliaries.append(Helper("f", 2, 2))
    if sketch.chance(0.3):
        sketch.auxiliaries.append(Helper("u", 0, int(sketch.rng.integers(1, 4))))
    sketch.largest = 2 * MIXED_ROWS
    sketch.settle()
    for _ in range(sketch.one((1, 1, 2))):
        made = choice(sketch, ("pair", "linear", "real sum"))
        if made is not None:
            sketch.add(made)
    rules(sketch, ("pair", "linear", "real sum", "product"), sketch.one((1, 1, 2)), often=0.0)


def from_configspace(sketch: Sketch) -> None:
    """A ConfigSpace: conditions in disjunctive normal form, forbidden clauses, and rules on imported parameters."""
    sketch.origin = "configspace"
    for v in range(sketch.one((4, 4, 5))):
        found = normal_form(sketch) if v > 1 and sketch.chance(0.8) else None
        when, kind = () if found is None else (found,), sketch.one(("integer", "ordinal", "categorical", "real"))
        if kind == "integer":
            integer(sketch, f"v{v}", int(sketch.rng.integers(2, 5)), when, steps=False)
        elif kind == "real" and v > 2:
            real(sketch, f"v{v}", ORDINARY, when)
        else:
            values = tuple(sketch.some(STRINGS if sketch.chance(0.5) else range(7), sketch.one((2, 3))))
            kind = kind if kind != "real" else "categorical"
            sketch.parameters.append(Parameter(f"v{v}", kind, values, when=when))
    sketch.largest = 4 * MIXED_ROWS
    sketch.settle()
    for _ in range(sketch.one((1, 2))):
        drawn = clause(sketch)
        if drawn is not None:
            sketch.add(drawn)
    rules(sketch, ("pair", "linear", "real sum"), sketch.one((0, 1)), often=0.2)


def from_optuna(sketch: Sketch) -> None:
    """Optuna distributions, and rules on imported parameters."""
    sketch.origin = "optuna"
    for v in range(sketch.one((3, 3, 4))):
        kind = sketch.one(("integer", "categorical", "real"))
        if kind == "integer":
            integer(sketch, f"v{v}", int(sketch.rng.integers(2, 6)))
            p = sketch.parameters.pop()
            sketch.parameters.append(replace(p, high=p.values[-1], log=p.log and p.step == 1))
        elif kind == "real":
            real(sketch, f"v{v}", ORDINARY)
        else:
            pool = tuple(value for value in HARD + ODD if not isinstance(value, tuple))
            values = sketch.some(pool, sketch.one((2, 3)))
            sketch.parameters.append(Parameter(f"v{v}", "categorical", tuple(dict.fromkeys(values))))
    sketch.largest = 2 * MIXED_ROWS
    sketch.settle()
    rules(sketch, ("pair", "linear", "real sum", "cardinality"), sketch.one((1, 2)), often=0.2)


KINDS: dict[str, tuple[float, Callable[[Sketch], None]]] = {
    "cycles": (0.08, cycles),
    "products": (0.06, products),
    "conditional": (0.07, conditional),
    "helpers": (0.06, auxiliaries),
    "logic": (0.1, logic),
    "wide integers": (0.06, wide_integers),
    "stepped reals": (0.06, stepped_reals),
    "mixtures": (0.05, mixtures),
    "large ranges": (0.08, large_ranges),
    "real products": (0.05, real_products),
    "everything": (0.04, everything),
    "formulas": (0.12, formulas),
    "products of reals": (0.06, products_of_reals),
    "from_pyomo": (0.05, from_pyomo),
    "from_configspace": (0.04, from_configspace),
    "from_optuna": (0.02, from_optuna),
}
"""Share and generator of each kind."""


def unrelated(truth: Truth) -> bool:
    """Return True if a space is empty although no part (rule, clause, disjunction) or pair of parts is infeasible."""
    return truth.empty and not any(truth.contradicts(j.part.name) for j in truth.judged)
