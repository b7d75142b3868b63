"""Samples, designs and searches where rules tie parameters to auxiliary variables, functions and disjuncts."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunction
from scipy.optimize import linprog

import mipcash as mc
from mipcash.program.forms import Vector
from mipcash.space.compiled import compiled
from mipcash.space.numbers.assembly import Row, projected
from mipcash.space.numbers.legal_numbers import LegalNumbers


def even() -> mc.Space:
    space = mc.Space("even")
    x, h = space.integer("x", 0, 1000), space.auxiliary("h", 0, 500)
    space.rule("even", x == 2 * h)
    return space


def piecewise() -> mc.Space:
    model = pyo.ConcreteModel("piecewise")
    model.x, model.y = pyo.Var(bounds=(0, 10)), pyo.Var(bounds=(0, 100))
    ends: dict[str, Any] = {
        "pw_pts": [0, 3, 6, 10],
        "f_rule": [0, 9, 12, 30],
        "pw_constr_type": "EQ",
        "pw_repn": "SOS2",
    }
    model.curve = pyo.Piecewise(model.y, model.x, **ends)
    return mc.Space.from_pyomo(model)


def function(of: Callable[[Any, Any], Any]) -> mc.Space:
    space = mc.Space("function")
    x, y, t = (space.integer(name, 0, 500) for name in "xyt")
    space.rule("t", t == of(x, y))
    space.rule("together", x + y <= 600)
    return space


SPACES: dict[str, Callable[[], mc.Space]] = {
    "an equation with an auxiliary": even,
    "a piecewise function": piecewise,
    "a maximum": lambda: function(mc.maximum),
    "a distance": lambda: function(lambda x, y: abs(x - y)),
}


@pytest.mark.parametrize("name", SPACES)
def test_samples_are_spread_over_the_legal_values(name: str) -> None:
    space = SPACES[name]()
    found = [c["x"] for c in space.sample(24)]
    assert len({round(float(x), 6) for x in found}) >= 12
    high = 10 if name == "a piecewise function" else 500
    assert min(np.histogram(np.minimum(found, high), 4, (0, high))[0]) >= 1
    assert len(space.sample(8, criterion="maximin")) == 8


def test_a_search_reaches_values_inside_the_pieces() -> None:
    result = mc.minimize(lambda c: (c["x"] - 4.5) ** 2, piecewise(), 16, seed=0, progress=False)
    assert result.value < 1e-3
    assert len({round(t.config["x"], 3) for t in result.history} - {0, 3, 6, 10}) >= 8


def packed() -> mc.Space:
    """Three boxes on a strip that do not overlap: a disjunction of four for each pair."""
    wide, high = {"a": 3, "b": 4, "c": 2}, {"a": 2, "b": 1, "c": 4}
    model = pyo.ConcreteModel("strip")
    model.x, model.y = pyo.Var(wide, bounds=(0, 9)), pyo.Var(wide, bounds=(0, 5))
    model.fits = pyo.Constraint(wide, rule=lambda m, i: m.y[i] + high[i] <= 4)
    x, y = model.x, model.y
    model.apart = Disjunction(
        list(itertools.combinations(wide, 2)),
        rule=lambda m, i, j: [
            [x[i] + wide[i] <= x[j]],
            [x[j] + wide[j] <= x[i]],
            [y[i] + high[i] <= y[j]],
            [y[j] + high[j] <= y[i]],
        ],
    )
    return mc.Space.from_pyomo(model)


def test_a_point_is_looked_up_in_all_parts_at_once_as_in_each() -> None:
    space = packed()
    now = compiled(space)
    (config,) = space.sample(1)
    legal = now.legal_numbers(now.program.encode(config), np.zeros(now.program.n))
    assert isinstance(legal, LegalNumbers)
    assert len(legal.parts) > 20
    rng = np.random.default_rng(0)
    low, high = legal.parts[0].low, legal.parts[0].high
    points: list[Vector] = [rng.uniform(low - 0.1, high + 0.1) for _ in range(400)]
    points += [legal.spread(np.array([config[label] for label in legal.labels]), rng) for _ in range(20)]
    for tolerance in (0.0, 1.0):
        each = [next((p for p in legal.parts if p.legal(x, tolerance)), None) for x in points]
        assert [legal.part_at(x, tolerance) for x in points] == each
        assert None in each
        assert any(part is not None for part in each)


def feasible(rows: list[Row], x: Vector) -> bool:
    """Return True if some values of the variables after those in x satisfy the rows, by linear programming."""
    k = len(x)
    a = np.array([r.c for r in rows])
    bodies = a[:, :k] @ x
    above, below = np.array([r.high for r in rows]) - bodies, np.array([r.low for r in rows]) - bodies
    matrix, ends = np.concatenate([a[:, k:], -a[:, k:]]), np.concatenate([above, -below])
    there = np.isfinite(ends)
    found = linprog(np.zeros(a.shape[1] - k), matrix[there], ends[there] + 1e-9, bounds=(None, None))
    return bool(found.status == 0)


@pytest.mark.parametrize("seed", range(12))
def test_a_projection_holds_where_a_linear_program_finds_values(seed: int) -> None:
    rng, k, q = np.random.default_rng(seed), 2, 3
    rows = [Row(np.eye(k + q)[k + j], -3.0, 3.0, 0.0, 0.0, "") for j in range(q)]
    for n in range(5):
        c, end = rng.integers(-3, 4, k + q).astype(float), float(rng.integers(-4, 5))
        low = end if n == 0 else -np.inf if n % 2 else end - 6.0
        rows.append(Row(c, low, end, 0.0, 0.0, f"r{n}"))
    left = projected(rows, k)
    assert left is not None
    for x in rng.uniform(-4.0, 4.0, (150, k)):
        bodies = [float(r.c[:k] @ x) for r in left]
        margin = min((min(b - r.low, r.high - b) for b, r in zip(bodies, left, strict=True)), default=1.0)
        if abs(margin) > 1e-6:
            assert (margin > 0.0) == feasible(rows, x)


def test_legal_numbers_are_those_that_the_solver_accepts() -> None:
    model = pyo.ConcreteModel()
    model.x, model.y, model.t = pyo.Var(bounds=(0, 4)), pyo.Var(bounds=(0, 4)), pyo.Var(bounds=(0, 2))
    model.s = pyo.Var(bounds=(-1, 1))
    model.a = pyo.Constraint(expr=model.x - 2 * model.t + model.s == 0.5)
    model.b = pyo.Constraint(expr=model.y + model.t <= 3)
    model.c = pyo.Constraint(expr=model.y - model.s >= 0.3)
    space = mc.Space.from_pyomo(model, auxiliary=["t", "s"])
    now = compiled(space)
    legal = now.legal_numbers(np.zeros(0, dtype=np.int64), np.zeros(now.program.n))
    assert isinstance(legal, LegalNumbers)
    points = np.random.default_rng(0).uniform(0, 4, (120, 2))
    accepted = [space.is_legal(dict(zip(legal.labels, x.tolist(), strict=True))) for x in points]
    assert [legal.legal(x) for x in points] == accepted
    assert 20 < sum(accepted) < 100


def test_a_search_moves_wide_auxiliary_integers_too() -> None:
    result = mc.minimize(lambda c: (c["x"] - 450) ** 2, even(), 24, seed=0, progress=False)
    assert result.value <= 64
    assert all(c["x"] % 2 == 0 for c in (t.config for t in result.history))


WINDOWS = [(0.0, 0.1), (0.225, 0.325), (0.45, 0.55), (0.675, 0.775), (0.9, 1.0)]


def windows() -> mc.Space:
    space = mc.Space("windows")
    for name in "xy":
        x = space.real(name, 0, 1)
        space.rule(name, mc.any_of(*[(x >= low) & (x <= high) for low, high in WINDOWS]))
    return space


def mixture(n: int, most: int) -> mc.Space:
    """Shares of which at most some are above 0, by an auxiliary binary for each."""
    space = mc.Space("mixture")
    shares = [space.real(f"x{k}", 0, 1) for k in range(n)]
    used = [space.auxiliary(f"u{k}", 0, 1) for k in range(n)]
    space.rule("whole", sum(shares) == 1)
    space.rule("few", sum(used) <= most)
    for k, (x, u) in enumerate(zip(shares, used, strict=True)):
        space.rule(f"most {k}", x <= u)
        space.rule(f"least {k}", x >= 0.1 * u)
    return space


def test_samples_reach_all_alternatives_of_several_rules() -> None:
    cells = [tuple(int(c[name] * 4.5) for name in "xy") for c in windows().sample(120, seed=0)]
    assert len(set(cells)) == len(WINDOWS) ** 2


@pytest.mark.parametrize(
    ("n", "most"), [(5, 2), (8, 3), (9, 4)], ids=["few parts", "many parts", "too many to enumerate"]
)
def test_samples_of_a_mixture_have_all_numbers_of_ingredients(n: int, most: int) -> None:
    counts = [sum(v > 0 for v in c.values()) for c in mixture(n, most).sample(24, seed=0)]
    assert {2, most} <= set(counts)
    assert max(counts) == most


@pytest.mark.parametrize(
    ("space", "target"), [(mixture(5, 2), [0.4, 0, 0, 0.6, 0]), (windows(), [0.5, 0.5])], ids=["mixture", "windows"]
)
def test_a_search_moves_between_the_parts_of_the_legal_set(space: mc.Space, target: list[float]) -> None:
    def loss(config: Any) -> float:
        return float(sum((v - t) ** 2 for v, t in zip(config.values(), target, strict=True)))

    unhurried = mc.Method("hybrid", seconds_per_proposal=None)
    results = [mc.minimize(loss, space, 30, optimizer=unhurried, seed=seed, progress=False) for seed in range(2)]
    assert [result.value for result in results] == pytest.approx([0.0, 0.0], abs=1e-3)
    assert all(result.stopped == "budget" for result in results)


def test_the_nearest_configuration_may_lie_in_any_part() -> None:
    space, rng = windows(), np.random.default_rng(0)
    for _ in range(10):
        given = dict(zip("xy", rng.random(2).tolist(), strict=True))
        found = space.nearest(given)
        for name, value in given.items():
            away = min(max(low - value, value - high, 0.0) for low, high in WINDOWS)
            assert abs(found[name] - value) == pytest.approx(away, abs=1e-3)


@pytest.mark.parametrize(
    ("shares", "named"),
    [
        ((0.4, 0.0, 0.3, 0.3), {"few", "use 0", "use 2", "use 3"}),
        ((0.5, 0.5, 0.0, 0.0), {"never 0 with 1", "use 0", "use 1"}),
        ((0.95, 0.0, 0.05, 0.0), {"use 2", "least 2"}),
    ],
)
def test_a_violation_names_the_rules_that_suffice_for_it(shares: tuple[float, ...], named: set[str]) -> None:
    space = mc.Space("mixture")
    x = [space.real(f"x{k}", 0, 1) for k in range(4)]
    used = [space.auxiliary(f"u{k}", 0, 1) for k in range(4)]
    space.rule("whole", sum(x) == 1)
    space.rule("few", sum(used) <= 2)
    space.rule("never 0 with 1", used[0] + used[1] <= 1)
    for k in range(4):
        space.rule(f"use {k}", x[k] <= used[k])
        space.rule(f"least {k}", x[k] >= 0.1 * used[k])
    (violation,) = space.validate({f"x{k}": share for k, share in enumerate(shares)})
    assert set(re.findall(r"'([^']+)'", violation.message)) == named
