"""Answers to questions about small spaces against ``golden/answers.txt``: the same seed gives the same answers.

No question has two equally good answers, of which versions of a solver would give one or the other.

After an intended change, ``python tests/space/test_recorded.py`` writes the file again; read its difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.backends.task import SolverSettings
from mipcash.program.forms import QuadraticForm
from mipcash.space.domain import Domain
from mipcash.space.exclusion import Exclusion

ORDER = ("scaler", "reducer", "filters")
GOLDEN = Path(__file__).parent / "golden" / "answers.txt"


def algorithms(space: mc.Space) -> list[Any]:
    """Modules within modules, an ordering of them, and rules that exclude pairs."""
    scaler = space.module(
        "scaler",
        {"none": {}, "standard": {}, "bins": {"n": mc.Integer(2, 20), "by": mc.Categorical(["mass", "width"])}},
    )
    reducer = space.module("reducer", {"none": {}, "pca": {"whiten": mc.Categorical([True, False])}})
    model = space.module(
        "model",
        {
            "tree": {"depth": mc.Integer(1, 9)},
            "net": {"layers": mc.Integer(1, 3), "rate": mc.Real(1e-4, 1, log=True)},
            "bayes": {},
        },
    )
    filters = space.module("filters", {"none": {}, "wide": {"width": mc.Integer(1, 4)}})
    order = space.ordering("order", [scaler, reducer, filters])
    space.categorical("second", ["relu", "tanh", "selu"], when=space["model.net.layers"].is_(2, 3))
    space.rule("no bins for networks", scaler["bins"] + model["net"] <= 1)
    space.rule("scaled before it is reduced", order.position(scaler) <= order.position(reducer))
    space.rule("deep trees need pca", mc.implies(space["model.tree.depth"] >= 6, reducer["pca"]))
    return [
        space["model.tree.depth"] + 2 * space["scaler.bins.n"],
        "scaler.bins.n",
        {
            "scaler": "none",
            "reducer": "none",
            "model": "tree",
            "model.tree.depth": 8,
            "filters": "none",
            "order": ORDER,
        },
    ]


def budget(space: mc.Space) -> list[Any]:
    """Indicators under a knapsack and a cardinality, with an integer, an ordinal and a choice beside them."""
    bits = [space.integer(f"b{k}", 0, 1) for k in range(10)]
    size, kind = space.ordinal("size", [1, 2, 4, 8]), space.categorical("kind", ["a", "b", "c"])
    n = space.integer("n", 0, 7, when=kind["a"] | size.is_(8))
    space.rule("weight", sum((3 + 5 * k % 7) * b for k, b in enumerate(bits)) + 2 * size <= 26)
    space.rule("some", sum(bits) >= 3)
    space.rule("pairs", bits[0] * bits[1] + bits[2] * bits[3] <= 1)
    return [
        sum((k + 2) ** 0.5 * b for k, b in enumerate(bits)) + 0.3 * n,
        {**{b.label: int(k < 3) for k, b in enumerate(bits)}, "size": 8, "kind": "a", "n": 9},
    ]


def mixture(space: mc.Space) -> list[Any]:
    """Shares that add up to one, at most three of them positive, each at least a tenth where it is."""
    shares = [space.real(f"s{k}", 0, 1) for k in range(4)]
    used = [space.integer(f"u{k}", 0, 1) for k in range(4)]
    space.rule("all", sum(shares) == 1)
    for k, (s, u) in enumerate(zip(shares, used, strict=True)):
        space.rule(f"most {k}", s <= 0.8 * u)
        space.rule(f"least {k}", s >= 0.1 * u)
    space.rule("few", sum(used) <= 3)
    temperature = space.real("temperature", 20, 90, step=10)
    space.rule("hot", temperature + 60 * shares[0] <= 95)
    return [
        temperature + 30 * shares[0] - shares[2],
        dict(s0=0.7, s1=0.7, s2=0, s3=0, u0=1, u1=1, u2=0, u3=0, temperature=88),
    ]


def products(space: mc.Space) -> list[Any]:
    """Products of reals, of wide integers and of both, some on a log scale."""
    x, y = space.real("x", 0.01, 10, log=True), space.real("y", 0, 5)
    n, m = space.integer("n", 1, 500), space.integer("m", 1, 400, log=True)
    space.rule("area", x * y <= 4)
    space.rule("memory", n * m <= 2000)
    space.rule("joint", n + 40 * y >= 60)
    space.real("free", -1, 1)
    return [n + 10 * y, {"x": 8.0, "y": 3.0, "n": 300, "m": 100, "free": 0.25}]


def alternatives(space: mc.Space) -> list[Any]:
    """Reals and a wide integer under alternatives, distances and maxima."""
    x, y = space.real("x", -2, 2), space.real("y", -2, 2)
    n, kind = space.integer("n", 0, 300), space.categorical("kind", ["low", "high", "any"])
    space.rule("corner", (x + y <= -1) | (x - y >= 1) | kind["any"])
    space.rule("apart", abs(x - y) >= 0.5)
    space.rule("largest", mc.maximum(x, y) <= 1.5)
    space.rule("count", mc.implies(kind["low"], n <= 20))
    space.rule("many", mc.implies(kind["high"], n + 10 * x >= 150))
    return [n - 3 * x + y, {"x": 1.8, "y": 1.7, "n": 100, "kind": "low"}]


def layers(space: mc.Space) -> list[Any]:
    """An auxiliary integer, conditional integers, and a real that is active with them."""
    n, stride, size = (
        space.integer("layers", 0, 2),
        space.ordinal("stride", [1, 2, 3]),
        space.ordinal("filter", [3, 5, 7]),
    )
    pad, width = space.integer("padding", 0, 3), space.auxiliary("width", 1, 28)
    space.rule("whole", 28 - size + pad == stride * (width - 1))
    space.real("decay", 1e-6, 1e-2, log=True, when=n >= 1)
    space.integer("channels", 8, 64, log=True, when=n.is_(2))
    space.rule("area", mc.implies(space["channels"] >= 32, size <= 5))
    return [size - 2 * pad, {"layers": 1, "decay": 1e-3, "stride": 3, "filter": 7, "padding": 1}]


def loose(space: mc.Space) -> list[Any]:
    """Numbers under rules that most draws satisfy, beside choices and under one of them."""
    x, n, kind = space.real("x", 0.1, 10, log=True), space.integer("n", 0, 99), space.categorical("kind", ["a", "b"])
    y = space.real("y", 0, 2, step=0.25, when=kind["a"])
    space.rule("sum", 10 * x + n <= 130)
    space.rule("dear", y + kind["b"] + x <= 8)
    return [n - 3 * x + y, {"x": 9.0, "n": 80, "kind": "a", "y": 1.1}]


def whole_numbers(space: mc.Space) -> list[Any]:
    """Wide integers with steps in equations, which only exchanges keep."""
    a, b, c = (space.integer(name, 0, 600, step=step) for name, step in (("a", 1), ("b", 3), ("c", 5)))
    d = space.integer("d", -(10**6), 10**6)
    space.rule("sum", a + b + 2 * c == 701)
    space.rule("near", abs(d - 100 * a) <= 50)
    return [a - b + 0.5 * c, {"a": 600, "b": 600, "c": 0, "d": 7}]


def few_points(space: mc.Space) -> list[Any]:
    """Four legal points and no more, of numbers and choices."""
    a, b, k = space.integer("a", 0, 9), space.integer("b", 0, 9), space.categorical("k", ["p", "q"])
    space.rule("product", a * b == 18)
    space.rule("larger", a <= b + 3)
    space.rule("choice", mc.implies(a <= b, k["p"]))
    space.rule("other", mc.implies(k["p"], a >= 2))
    return [a + b, {"a": 5, "b": 4, "k": "q"}]


def neighbours(space: mc.Space) -> list[Any]:
    """A row of choices of which neighbours differ, and an ordering of many members."""
    row = [space.categorical(f"c{k}", ["r", "g", "b"]) for k in range(9)]
    for k, (one, two) in enumerate(pairwise(row)):
        for colour in "rgb":
            space.rule(f"{colour}{k}", one[colour] + two[colour] <= 1)
    order = space.ordering("order", row[:4])
    space.rule("early", order.position(row[3]) <= 1)
    space.rule("before", order.position(row[0]) <= order.position(row[1]))
    return [
        sum((k + 1) * c["r"] - k * c["g"] for k, c in enumerate(row)),
        {**{f"c{k}": "rgb"[k % 3] for k in range(9)}, "order": ("c0", "c3", "c1", "c2")},
    ]


def contradicting(space: mc.Space) -> list[Any]:
    """Empty by three of five rules."""
    x, n, k = space.real("x", 0, 10), space.integer("n", 0, 20), space.categorical("k", ["p", "q"])
    space.rule("sum", x + n <= 12)
    space.rule("least", 2 * x >= 9)
    space.rule("needed", n >= 9 - k["q"])
    space.rule("cheap", k["q"] + x <= 9.5)
    space.rule("some", n <= 19)
    return []


def odd(space: mc.Space) -> list[Any]:
    """Empty by an equation without whole solutions."""
    a, b, c = (space.integer(name, 0, 40) for name in "abc")
    space.rule("even", 2 * a + 4 * b == 37)
    space.rule("other", a + c <= 50)
    return []


SPACES: tuple[Callable[[mc.Space], list[Any]], ...] = (
    algorithms, budget, mixture, products, alternatives, layers, loose, whole_numbers, few_points, neighbours, contradicting, odd,
)  # fmt: skip


def shown(value: Any) -> str:
    """A value with six digits of each real."""
    if isinstance(value, dict):
        return ", ".join(f"{name}={shown(of)}" for name, of in value.items())
    return f"{value + 0.0:.6g}" if isinstance(value, float) else str(value)


def answers(declare: Callable[[mc.Space], list[Any]]) -> Iterator[str]:
    """Questions about a space and their answers, a line each."""
    space = mc.Space(declare.__name__, expand_limit=32)
    asked = declare(space)
    yield f"{declare.__name__}: {declare.__doc__}"
    yield f"  explain: {space.explain()}"
    yield f"  count: {space.count()} of {space.sizes()}"
    if not asked:
        none = [space.optimum(next(iter(space.parameters)), direction) for direction in ("minimize", "maximize")]
        yield f"  no optimum: {[(shown(best.value), shown(best.bound), best.status, best.config) for best in none]}"
        return
    yield from (f"  bounds of {name}: {extent}" for name, extent in space.bounds().items())
    numbers = declare in (mixture, products, alternatives)
    criteria: Sequence[str | None] = (None,) if numbers else (None, "maximin", "d-optimal")
    for criterion in (*criteria, "uniform") if declare in (budget, neighbours) else criteria:
        found = space.sample(3 if declare is few_points else 6, seed=4, criterion=criterion)
        yield from (f"  sample, {criterion}: {shown(c)}" for c in found)
    points, rng = list[Any](), np.random.default_rng(5)
    for _ in range(3 if declare is few_points else 8):
        points.append(Domain.of(space).design(rng, points)[0])
        yield f"  design: {shown(points[-1])}"
    yield from searches(Domain.of(space), points[2])
    for question in asked:
        if isinstance(question, dict):
            yield f"  nearest to {shown(question)}: {shown(space.nearest(question))}"
            yield f"  why not {shown(question)}: {space.why_illegal(question)}"
        else:
            for direction in ("minimize", "maximize"):
                best = space.optimum(question, direction)
                yield f"  optimum, {direction}: {shown(best.value)}, at least {shown(best.bound)}, {best.status}"


def searches(domain: Domain, config: dict[str, Any]) -> Iterator[str]:
    """Answers of the search domain: to random forms, by local search too, and in the sub-space with the first values of a point."""
    rng, program = np.random.default_rng(6), domain.program
    form = QuadraticForm.zero(program.n)
    form.linear[: program.n_z] = rng.normal(size=program.n_z)
    pairs = rng.integers(0, program.n_z, (2, 6)) if program.n_z else np.zeros((2, 0), dtype=np.int64)
    form = QuadraticForm(0.5, form.linear, *pairs, rng.normal(size=pairs.shape[1]))
    best = domain.minimise(form, SolverSettings(), rng=rng)
    assert best.columns is not None
    levels = program.levels_of(best.columns)
    yield f"  least of a form: {shown(best.value)} at levels {levels.tolist()}, {best.status}"
    units = None if not program.numbers else domain.encode([config])[0].units
    found = domain.incumbent(form, units, [Exclusion(levels)], [], rng)
    yield f"  by local search elsewhere: {None if found is None else (found[0].tolist(), shown(found[1]))}"
    fixed = dict(list(config.items())[:2])
    part = domain.restricted(fixed)
    yield from (f"  sample at {shown(fixed)}: {shown(c)}" for c in part.sample(2, rng))
    yield f"  nearest at {shown(fixed)}: {shown(part.nearest(config))}"


@pytest.mark.parametrize("declare", SPACES)
def test_answers_are_those_of_the_file(declare: Callable[[mc.Space], list[Any]]) -> None:
    text = "\n".join(answers(declare)) + "\n"
    assert text in GOLDEN.read_text(encoding="utf-8")


if __name__ == "__main__":
    GOLDEN.write_text("".join("\n".join(answers(declare)) + "\n" for declare in SPACES), encoding="utf-8")
