"""Building blocks of drawn spaces: parameters, and rules that leave a legal set of a given size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np

from tests.fuzz.described import Condition, Parameter, Relation, Rule, Term, Value
from tests.fuzz.shapes import SHAPES, condition, distinct, numbers
from tests.fuzz.sketch import CUT, EMPTY, FEW, FEW_CONFIGS, Sketch

AIMS = {CUT: 0.6, FEW: 0.12, EMPTY: 0.28}
"""Aims of the last rules, and their probabilities."""
RINGS = 0.12
"""Share of spaces that end with a ring of rules (see :func:`ring`), in addition to half of the cycles."""
PLAIN = 0.4
"""Share of spaces whose coefficients are small whole numbers."""
ATTEMPTS, HIDDEN_ATTEMPTS = 20, 15
"""Attempts at a last rule for an aim; the first ``HIDDEN_ATTEMPTS`` reject a rule that contradicts one other rule."""
MOST_RULES = 8
MIXED_ROWS = 100
"""Largest number of assignments of a space with reals; each of them requires linear programs in fractions."""
STRINGS = ("small", "middle", "large", "huge")
ODD = (None, True, 1, "relu", (1, 2), 0, False, 2.5, "None")
HARD = (
    "",
    "\n",
    True,
    1,
    0.0,
    False,
    None,
    "None",
    "1",
    "a" * 300,
    "größe \u2264 \U0001f642",
    'it\'s "quoted" \\',
    " ",
)
NUMBERS = (-2, 0, 0.1, 0.3, 0.5, 1, 2, 3, 16, 128)


# -- parameters -----------------------------------------------------------------------------------------------------


def integer(sketch: Sketch, name: str, levels: int, when: tuple[Condition, ...] = (), steps: bool = True) -> None:
    low, step = sketch.one((0, 0, 1, -3, 5)), sketch.one((1, 1, 1, 2, 3)) if steps else 1
    high = low + (levels - 1) * step + (int(sketch.rng.integers(step)) if sketch.chance(0.3) else 0)
    values, log = tuple(range(low, high + 1, step)), low > 0 and sketch.chance(0.2)
    sketch.parameters.append(Parameter(name, "integer", values, low, high, step, log, when))


def narrow(sketch: Sketch, name: str, when: tuple[Condition, ...] = (), most: int = 5) -> None:
    """Add an integer, an ordinal or a category of two to ``most`` levels."""
    kind = sketch.one(("integer", "integer", "ordinal", "strings", "categorical", "categorical"))
    if kind == "integer":
        return integer(sketch, name, int(sketch.rng.integers(2, most + 1)), when)
    pool = {"ordinal": NUMBERS, "strings": STRINGS, "categorical": sketch.one((ODD, HARD))}[kind]
    values = tuple(sketch.some(list(pool), int(sketch.rng.integers(2, 5))))
    if kind == "ordinal":
        values = tuple(sorted(values))
    sketch.parameters.append(Parameter(name, "ordinal" if kind == "strings" else kind, values, when=when))


def wide(sketch: Sketch, name: str, when: tuple[Condition, ...] = (), most: int = 101) -> None:
    """Add an integer with more than ``expand_limit`` levels."""
    step = sketch.one((1, 2, 3))
    levels = int(sketch.rng.integers(sketch.expand_limit + 1, max(sketch.expand_limit + 3, most + 1)))
    low = sketch.one((0, 0, 1, -7, 100))
    high = low + (levels - 1) * step
    values, log = tuple(range(low, high + 1, step)), low > 0 and sketch.chance(0.2)
    sketch.parameters.append(Parameter(name, "integer", values, low, high, step, log, when))


def stepped(sketch: Sketch, name: str, levels: int, when: tuple[Condition, ...] = ()) -> None:
    """Add a real with a step, whose values are computed in decimals."""
    low, step = sketch.one(("0", "0", "-0.3", "0.5", "100")), sketch.one(("0.1", "0.1", "0.05", "0.25", "1.5", "0.003"))
    values = tuple(float(Decimal(low) + k * Decimal(step)) for k in range(levels))
    sketch.parameters.append(Parameter(name, "stepped", values, values[0], values[-1], float(step), when=when))


def real(sketch: Sketch, name: str, ranges: Sequence[tuple[float, float]], when: tuple[Condition, ...] = ()) -> None:
    low, high = sketch.one(list(ranges))
    log = low > 0 and sketch.chance(0.3)
    sketch.parameters.append(Parameter(name, "real", (), low, high, log=log, when=when))


def gridded(sketch: Sketch, name: str, made: Parameter) -> None:
    """Add a parameter whose table is a grid: its ends, zero, evenly spaced points and points of all magnitudes."""
    low, high = float(made.low), float(made.high)
    points = [low, high, *np.linspace(low, high, 9).tolist()]
    points += [at for m in np.geomspace(1e-7, 1e9, 17).tolist() for at in (low + m, m, 0.0) if low <= at <= high]
    if made.kind == "integer":
        points = [made.low + round((at - low) / made.step) * made.step for at in points]
        points = [at for at in points if at <= made.high]
    sketch.gridded[name] = made
    values = tuple(sorted({at + 0 for at in points}))
    sketch.parameters.append(replace(made, kind="ordinal", values=values))


def module(sketch: Sketch, name: str, hyper: bool = True, when: tuple[Condition, ...] = ()) -> None:
    algorithms = ("none", "pca", "ica")[: int(sketch.rng.integers(2, 4))]
    sketch.parameters.append(Parameter(name, "module", algorithms, when=when))
    for algorithm in algorithms[1:] if hyper else ():
        narrow(sketch, f"{name}.{algorithm}.k", most=4)
        made = sketch.parameters.pop()
        sketch.parameters.append(Parameter(**{**vars(made), "owner": (name, algorithm)}))


# -- endings --------------------------------------------------------------------------------------------------------


def rules(sketch: Sketch, shapes: Sequence[str], count: int, often: float = 0.25) -> None:
    """Add up to ``count`` rules that cut the legal set, and then the rules of :func:`finish`."""
    for _ in range(count):
        one_rule(sketch, shapes, CUT, often)
    finish(sketch, shapes, often)


def finish(sketch: Sketch, shapes: Sequence[str], often: float = 0.0) -> None:
    """Add rules that achieve a random aim, if one of ``ATTEMPTS`` attempts succeeds."""
    pool = [f for f in numbers(sketch) if isinstance(f, Value)]
    if len(pool) > 2 and sketch.chance(RINGS):
        ring(sketch, sketch.some(pool, sketch.one((3, 3, 4))))
        return
    aim = list(AIMS)[int(sketch.rng.choice(len(AIMS), p=list(AIMS.values())))]
    if aim == CUT:
        one_rule(sketch, shapes, CUT, often)
    for attempt in range(ATTEMPTS if aim != CUT else 0):
        hidden = aim == EMPTY and attempt < HIDDEN_ATTEMPTS
        if (aim == FEW and sketch.left <= FEW_CONFIGS) or one_rule(sketch, shapes, aim, hidden=hidden):
            return
        if (sketch.left > 20 or hidden) and len(sketch.known.judged) < MOST_RULES:
            one_rule(sketch, shapes, CUT)


def ring(sketch: Sketch, factors: Sequence[Value]) -> None:
    """Add a cycle of rules over two numbers each, whose sum is 0 >= margin.

    The space is empty if the margin is positive. The smaller the margin, the more rounds bound propagation needs to
    detect this from one rule at a time.
    """
    count, known = len(factors), sketch.known
    if not known.legal.any():
        return
    signs = [sketch.one((1.0, -1.0)) for _ in factors]
    row = sketch.one(np.flatnonzero(known.legal).tolist())
    at = [float(known.table.factor(f)[row]) for f in factors]
    slacks = [float(sketch.one((-1, 0, 0, 1, 2))) for _ in factors]
    slacks[-1] = -sum(slacks[:-1]) - sketch.one((2.0, 1.0, 1.0, 0.5, 0.0, 0.0, -1.0, -2.0))
    for i in range(count):
        j = (i + 1) % count
        size = abs(sketch.coefficients(1)[0]) * sketch.one((1.0, -1.0))  # a negative size reverses the sense
        terms = Term(size * signs[i], (factors[i],)), Term(-size * signs[j], (factors[j],))
        bound = size * (signs[i] * at[i] - signs[j] * at[j] - slacks[i])
        direct = sketch.origin == "pyomo" or sketch.chance(0.15)
        sketch.add(Rule(sketch.name(direct), Relation(terms, ">=" if size > 0 else "<=", bound + 0.0), (), direct))


def one_rule(sketch: Sketch, shapes: Sequence[str], aim: str, often: float = 0.0, hidden: bool = False) -> bool:
    """Add a rule of a random shape; return True if it was added."""
    shape = sketch.one(list(shapes))
    drawn = distinct(SHAPES[shape](sketch))
    when = condition(sketch, often)
    return len(drawn) > 0 and sketch.rule(drawn, aim, when, equal=sketch.chance(0.15), hidden=hidden)
