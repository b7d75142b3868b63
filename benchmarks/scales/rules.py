"""Spaces under 2,000 linear rules, feasible by a configuration that was drawn first, and orderings under precedences to count."""

from __future__ import annotations

import numpy as np

import mipcash as mc
from benchmarks.scales.row import Asks, Question, Row, Sized

RULES: Sized = {"smoke": 60, "quick": 2000, "full": 2000}
SEEN: Sized = {"smoke": 3, "quick": 12, "full": 12}
"""Legal configurations before the first proposal."""
PROPOSALS: Sized = {"smoke": 2, "quick": 5, "full": 20}


def exclusions(size: str, categories: int = 60, levels: int = 6) -> mc.Space:
    """Rules that two levels of two categories exclude each other."""
    rng = np.random.default_rng(0)
    space = mc.Space("exclusions")
    choices = [space.categorical(f"c{k}", list(range(levels))) for k in range(categories)]
    hidden, made = rng.integers(levels, size=categories), 0
    while made < RULES[size]:
        i, j = rng.choice(categories, size=2, replace=False).tolist()
        a, b = rng.integers(levels, size=2).tolist()
        if (hidden[i], hidden[j]) != (a, b):
            space.rule(f"rule {made}", choices[i][a] + choices[j][b] <= 1)
            made += 1
    return space


def dense(size: str) -> mc.Space:
    """Rules over all of 40 integers and ordinals (of eight in the smallest size)."""
    numbers = 8 if size == "smoke" else 40
    rng = np.random.default_rng(0)
    space = mc.Space("dense")
    values: list[list[int]] = [list(range(11)) if k % 2 else [1, 2, 4, 8, 16] for k in range(numbers)]
    parameters = [space.integer(f"i{k}", 0, 10) if k % 2 else space.ordinal(f"o{k}", values[k]) for k in range(numbers)]
    hidden = np.array([rng.choice(v) for v in values])
    for r in range(RULES[size]):
        weights = rng.normal(size=numbers).round(2)
        bound = float(weights @ hidden + np.abs(weights).sum() * rng.uniform(0.5, 2.0))
        space.rule(f"rule {r}", sum(w * p for w, p in zip(weights.tolist(), parameters, strict=True)) <= bound)
    return space


def reals(size: str, numbers: int = 50) -> mc.Space:
    """Rules over so many reals, half of them over a tenth."""
    rng = np.random.default_rng(0)
    space = mc.Space("reals")
    parameters = [space.real(f"x{k}", 0.0, 1.0) for k in range(numbers)]
    hidden = rng.uniform(0.2, 0.8, size=numbers)
    for r in range(RULES[size]):
        weights = rng.normal(size=numbers).round(2) * (rng.random(numbers) < (0.1 if r % 2 else 1.0))
        weights[r % numbers] += 1.0
        bound = float(weights @ hidden + np.abs(weights).sum() * rng.uniform(0.05, 0.3))
        space.rule(f"rule {r}", sum(w * p for w, p in zip(weights.tolist(), parameters, strict=True) if w) <= bound)
    return space


def mixed(size: str, half: int = 30) -> mc.Space:
    """Rules over two of so many reals, some of them conditional, and as many categories: indicators, and ``when=``."""
    rng = np.random.default_rng(0)
    space = mc.Space("mixed")
    kinds = [space.categorical(f"c{k}", ["a", "b", "c"]) for k in range(half)]
    numbers = [
        space.real(f"x{k}", 0.0, 10.0, when=kinds[k]["a"]) if k % 5 == 4 else space.real(f"x{k}", 0.0, 10.0)
        for k in range(half)
    ]
    levels, hidden = rng.integers(3, size=half), rng.uniform(0.0, 10.0, size=half)
    hidden[4::5] *= levels[4::5] == 0
    for r in range(RULES[size]):
        i, j = rng.choice(half, size=2, replace=False).tolist()
        k, l = int(rng.integers(half)), int(rng.integers(3))
        c, d = rng.normal(size=2).round(2).tolist()
        at, room, indicator = c * hidden[i] + d * hidden[j], float(rng.uniform(0.0, 8.0)), kinds[k]["abc"[l]]
        body = c * numbers[i] + d * numbers[j]
        if r % 2:
            space.rule(f"rule {r}", body <= (at + room if levels[k] == l else room), when=indicator)
        else:
            space.rule(f"rule {r}", body - 3 * indicator <= at + room)
    return space


def ordered(modules: int, rules: int) -> mc.Space:
    """An ordering of modules of two algorithms each, under precedences."""
    rng = np.random.default_rng(0)
    space = mc.Space(f"ordering of {modules}")
    members = [space.module(f"m{k}", {"a": {}, "b": {}}) for k in range(modules)]
    order, hidden = space.ordering("order", members), rng.permutation(modules)
    for r in range(rules):
        i, j = sorted(rng.choice(modules, size=2, replace=False).tolist(), key=lambda k: int(hidden[k]))
        space.rule(f"rule {r}", order.position(members[i]) + 1 <= order.position(members[j]))
    return space


def neighbours(categories: int = 30, levels: int = 4) -> mc.Space:
    """Categories with exclusions between those that are at most three apart."""
    rng = np.random.default_rng(0)
    space = mc.Space("neighbours")
    choices = [space.categorical(f"c{k}", list(range(levels))) for k in range(categories)]
    for i in range(categories):
        for j in range(i + 1, min(categories, i + 4)):
            a, b = rng.integers(levels, size=2).tolist()
            space.rule(f"rule {i} {j}", choices[i][a] + choices[j][b] <= 1)
    return space


def _count(space: mc.Space) -> str:
    return str(space.count())


ROWS: tuple[Row, ...] = (
    *(Asks(f"2,000 rules: {f.__name__}", f, SEEN, PROPOSALS, 2.0, 10.0) for f in (exclusions, dense, reals, mixed)),
    Question("ordering of 8 under 7 rules", lambda _: ordered(8, 7), "count()", _count, 1.0),
    Question("ordering of 10 under 9 rules", lambda _: ordered(10, 9), "count()", _count, 5.0),
    Question("30 categories under 84 local rules", lambda _: neighbours(), "count()", _count, 5.0),
)
