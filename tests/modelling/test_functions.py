"""Functions and logic in rules: random rules against their evaluation in Python, for every configuration."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.errors import RuleError
from tests.fuzz.functions import conditions, declared, truth

A, B, O = tuple(range(-2, 4)), (0.5, 1, 2.5), (1, 2, 3)


def base(expand_limit: int) -> mc.Space:
    """Space whose integers are wide if the expand limit is small. ``o`` is active unless ``c`` is r."""
    space = mc.Space("functions", expand_limit=expand_limit)
    space.integer("a", A[0], A[-1])
    space.ordinal("b", B)
    c = space.categorical("c", ["p", "q", "r"])
    space.integer("o", O[0], O[-1], when=c.is_("p", "q"))
    return space


def configurations() -> list[dict[str, Any]]:
    found = []
    for a, b, c in itertools.product(A, B, "pqr"):
        found += [{"a": a, "b": b, "c": c}] if c == "r" else [{"a": a, "b": b, "c": c, "o": o} for o in O]
    return found


CONFIGS = configurations()


def agrees(node: Any, expand_limit: int) -> None:
    """Assert that validation, optimum, count and explanations agree with Python's evaluation of the rule."""
    space = base(expand_limit)
    relation = declared(node, lambda name: space[name])
    relation = relation == 1 if node[0] == "is" else relation
    legal = [c for c in CONFIGS if truth(node, c)]
    if isinstance(relation, (bool, np.bool_, int)):  # no parameter is left in it
        return
    try:
        rule = space.rule("drawn", relation)
    except RuleError:
        if len(legal) in (0, len(CONFIGS)):  # it always or never holds
            return
        raise
    assert [c for c in CONFIGS if space.is_legal(c)] == legal, rule
    worth = 3 * space["a"] + space["b"] - 2 * space["o"]
    if not legal:
        assert space.optimum(worth, "max").config is None, rule
        assert "'drawn'" in space.explain()
        return
    best = max(3 * c["a"] + c["b"] - 2 * c.get("o", 0) for c in legal)
    assert space.optimum(worth, "max").value == pytest.approx(best), rule
    if expand_limit == 64:
        assert int(space.count()) == len(legal), rule
    wrong = next((c for c in CONFIGS if c not in legal), None)
    if wrong is not None:
        (violation,) = space.validate(wrong)
        assert violation.name == "drawn"
        assert "(auxiliary)" not in space.why_illegal(wrong)


def test_random_rules_of_levels_agree_with_python() -> None:
    for node in conditions(12, 17, ("a", "b", "o"), ("a", "o"), ("a", "c"), ("<=", ">=", "==", "<", ">", "!=")):
        agrees(node, 64)


def test_random_rules_of_wide_integers_agree_with_python() -> None:
    """Without levels, rules over several numbers use auxiliary variables and the big-M form."""
    for node in conditions(7, 18, ("a", "b", "o"), ("b",), ("c",), ("<=", ">=", "==")):
        agrees(node, 2)


def test_rules_of_reals_agree_with_python() -> None:
    """Legality agrees with Python away from the bounds. Samples and optima are legal, and optima match a grid."""
    grid = np.linspace(-1, 1, 9)
    for write, meaning in (
        (lambda x, y: abs(x - y) >= 0.5, lambda x, y: abs(x - y) >= 0.5),
        (lambda x, y: abs(x) + mc.maximum(x, y) <= 0.8, lambda x, y: abs(x) + max(x, y) <= 0.8),
        (lambda x, y: mc.minimum(x, y, 0.2) == -0.25, lambda x, y: min(x, y, 0.2) == -0.25),
        (lambda x, y: mc.implies(x >= 0.25, y <= -0.5), lambda x, y: x < 0.25 or y <= -0.5),
        (lambda x, y: (x + y <= -0.5) | (x - y >= 0.75), lambda x, y: x + y <= -0.5 or x - y >= 0.75),
        (lambda x, y: ~(abs(x) <= 0.5) & (x * y <= 0.1), lambda x, y: abs(x) >= 0.5 and x * y <= 0.1),
    ):
        space = mc.Space("reals")
        x, y = space.real("x", -1, 1), space.real("y", -1, 1)
        rule = space.rule("drawn", write(x, y))
        points = [(u, v) for u in grid for v in grid]
        touching = {(u, v) for u, v in points if u == 0.25 and rule.written.startswith("implies")}
        for u, v in points:
            if (u, v) not in touching:
                assert space.is_legal({"x": u, "y": v}) == bool(meaning(u, v)), (rule, u, v)
        assert all(space.is_legal(c) for c in space.sample(2, seed=0))
        for sense, pick in (("max", max), ("min", min)):
            best = pick(2 * u - v for u, v in points if meaning(u, v))
            found = space.optimum(2 * x - y, sense)
            assert found.value >= best - 1e-3 if sense == "max" else found.value <= best + 1e-3
            assert space.is_legal(found.config)


@pytest.mark.parametrize("conditional", [False, True])
@pytest.mark.parametrize(("low", "step"), [(0.0, 0.1), (1.05, 0.1), (-3.0, 0.25)])
def test_negations_over_a_real_with_a_step_exclude_the_bound(low: float, step: float, conditional: bool) -> None:
    def legal(limit: int) -> list[bool]:
        space = mc.Space("steps", expand_limit=limit)
        c, n = space.categorical("c", ["on", "off"]), space.integer("n", 0, 2)
        t = space.real("t", low, low + 12 * step, step=step, when=c["on"] if conditional else None)
        bound = low + 5 * step
        space.rule("implied", mc.implies(t >= bound, n >= 1))
        space.rule("negated", ~(2 * t + 0.5 * n <= 2 * low + step))
        values = space.parameters["t"].domain.values
        points = itertools.product(("on", "off"), range(3), values)
        configs = [{"c": c, "n": n, "t": t} for c, n, t in points]
        if conditional:
            configs = [{k: v for k, v in x.items() if k != "t" or x["c"] == "on"} for x in configs]
        return [space.is_legal(config) for config in configs]

    assert legal(3) == legal(64)
    assert {True, False} == set(legal(3))


def test_map_accepts_any_function_of_the_value() -> None:
    space = base(64)
    space.rule("log", space["b"].map(math.log) + space["a"].map(lambda v: 2.0**v) <= 2)
    space.rule("cost", space["c"].map({"p": 1, "q": 2.5, "r": 4}) * space["b"] <= 5)
    for config in CONFIGS:
        log = math.log(config["b"]) + 2.0 ** config["a"] <= 2
        cost = {"p": 1, "q": 2.5, "r": 4}[config["c"]] * config["b"] <= 5
        assert space.is_legal(config) == (log and cost)


def test_messages_show_the_rule_as_written() -> None:
    space = base(64)
    a, o, c = space["a"], space["o"], space["c"]
    space.rule("far", abs(a - o) >= 4)
    (violation,) = space.validate({"a": 1, "b": 1, "c": "p", "o": 2})
    assert str(violation) == "rule 'far' is violated: abs(a - o) >= 4 does not hold"
    assert "abs(a - o) >= 4" in space.why_illegal({"a": 1, "b": 1, "c": "p", "o": 2})
    space.rule("near", mc.implies(c.is_("p", "q"), mc.maximum(a, o) <= 2))
    space.rule("some", (a >= 1) & ~c["r"])
    assert "'far'" in space.explain()
    assert "'some'" in space.explain()


def test_a_refused_rule_leaves_no_auxiliary_variables() -> None:
    space = mc.Space("reals")
    x, y = space.real("x", -1, 1), space.real("y", -1, 1)
    before = [v.name for v in space.model.component_data_objects()]
    with pytest.raises(RuleError, match="degree above two"):
        space.rule("r", mc.all_of((x + y <= 0) | (x - y <= 0), x * y * x == 0.5))
    assert [v.name for v in space.model.component_data_objects()] == before
    space.rule("r", (x + y <= 0) | (x - y <= 0))
    assert "r (auxiliary)" in [b.index() for b in space.model.parameters.values()]


def test_convex_functions_need_no_auxiliary_variable() -> None:
    space = mc.Space("reals")
    x, y = space.real("x", -1, 1), space.real("y", -1, 1)
    space.rule("diamond", abs(x) + abs(y) <= 1)
    assert (space.sizes()["columns"], space.sizes()["rows"]) == (2, 4)
    assert space.optimum(x + 2 * y, "max").value == pytest.approx(2)


def test_a_chain_excludes_only_its_strict_end() -> None:
    space = mc.Space("chain")
    a = space.integer("a", 0, 5)
    space.rule("half open", (a >= 1) < 4)
    assert [k for k in range(6) if space.is_legal({"a": k})] == [1, 2, 3]
    assert str(space.rules["half open"]) == "1 <= a < 4"


def test_a_relation_means_the_same_in_when_and_in_a_rule() -> None:
    space = mc.Space("rounded")
    p = space.ordinal("p", [1, 2, 3])
    space.real("x", 0, 1, when=0.1 * p <= 0.3)  # 0.1 * 3 > 0.3 in floats
    space.rule("small", 0.1 * p <= 0.3)
    assert space.is_legal({"p": 3, "x": 0.5})


def test_relations_are_neither_added_nor_multiplied() -> None:
    space = mc.Space("count")
    a, x = space.integer("a", 0, 3), space.real("x", 0, 1)
    for calculation in (
        lambda: sum([a >= 2, x <= 0.5]),
        lambda: (a >= 2) * x,
        lambda: x * (a >= 2),
        lambda: 1 - (x <= 0.5),
    ):
        with pytest.raises(RuleError, match=r"is a relation and no number.*take its indicator"):
            calculation()


@pytest.mark.parametrize("high", [6.0, 20.0])  # listed values, and a number
def test_negated_products_of_stepped_reals_are_exact(high: float) -> None:
    space = mc.Space("oven")
    heat, fan = space.real("heat", -0.5, high, step=0.1), space.categorical("fan", ["on", "off"])
    space.rule("cool", mc.implies(fan["on"] * heat >= 5, fan["off"]))
    space.rule("square", ~(heat * heat - 2 * heat >= 30))
    assert not space.is_legal({"heat": 5.0, "fan": "on"})
    assert space.optimum(heat * fan["on"], "max").value == pytest.approx(4.9)
    assert space.optimum(heat, "max").value == pytest.approx(min(high, 6.5))
    fine = mc.Space("fine")
    x, n = fine.real("x", 0.0, 20.0, step=0.0007), fine.integer("n", 0, 200)
    with pytest.raises(RuleError, match="which a solver cannot represent"):
        fine.rule("product", ~(x * n >= 30))
