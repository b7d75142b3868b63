"""Reals and wide integers with a step: samples, optima, bounds, and runs to the last configuration, against brute force."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mipcash as mc
from mipcash.space.numbers.lattice import directions_of
from tests.named import installed

Config = dict[str, Any]


def key(config: Config) -> str:
    return repr(sorted(config.items()))


def small(expand_limit: int) -> mc.Space:
    space = mc.Space("small", expand_limit=expand_limit)
    kind = space.categorical("kind", ["a", "b"])
    x, z = space.real("x", 0, 0.3, step=0.1), space.real("z", 1, 1.5, step=0.25, when=kind["b"])
    space.rule("r", x + z <= 1.4)
    return space


SMALL = [{"kind": "a", "x": k / 10} for k in range(4)]
SMALL += [{"kind": "b", "x": k / 10, "z": 1 + l / 4} for k in range(4) for l in range(3) if 10 * k + 25 * l <= 40]


def loss(config: Config) -> float:
    return (config["x"] - 0.32) ** 2 + abs(config.get("z", 1.1) - 1.3) + (config["kind"] == "a") / 10


@pytest.mark.parametrize(
    ("expand_limit", "optimizer"), [(64, "hybrid"), *((2, name) for name in installed("hybrid", "mivabo"))]
)
def test_a_run_proposes_every_configuration_once(expand_limit: int, optimizer: str) -> None:
    space = small(expand_limit)
    assert space.is_legal({"kind": "a", "x": 0.1 * 3})
    assert "nearest is 0.3" in str(space.validate({"kind": "a", "x": 0.28})[0])
    assert space.optimum(space["z"] - space["x"], "max").config == {"kind": "b", "x": 0.0, "z": 1.25}
    result = mc.minimize(loss, space, len(SMALL) + 5, optimizer=optimizer, progress=False)
    assert sorted(key(t.config) for t in result.history) == sorted(map(key, SMALL))
    assert result.value == min(map(loss, SMALL))
    assert "space exhausted" in result.stopped


def wide_rules(space: mc.Space) -> Callable[[Config], bool]:
    """Declare rules over reals of a million values. Return their check in integer millionths."""
    kind = space.categorical("kind", ["a", "b"])
    x, y = space.real("x", 0, 1, step=1e-6), space.real("y", 0, 1, step=1e-6, when=kind["a"])
    space.rule("equal", x + y == 0.8)
    space.rule("apart", x - y >= 0.1234565, when=kind["a"])

    def holds(config: Config) -> bool:
        a, b = (round(1e6 * config.get(name, 0.0)) for name in ("x", "y"))
        on_step = config["x"] == a / 10**6 and config.get("y", 0.0) == b / 10**6
        return on_step and a + b == 800_000 and (config["kind"] == "b" or a - b >= 123_457)

    return holds


def test_reals_of_a_million_values_are_exact() -> None:
    space = mc.Space("wide")
    holds = wide_rules(space)
    drawn = space.sample(12)
    assert all(map(holds, drawn))
    assert len({c["x"] for c in drawn if c["kind"] == "a"}) > 3
    least = space.optimum(space["x"] - space["y"])
    assert (least.status, least.config) == ("optimal", {"kind": "a", "x": 0.461729, "y": 0.338271})
    extents = space.bounds()
    assert (extents["x"].low, extents["x"].high) == (0.461729, 0.8)
    assert (extents["y"].low, extents["y"].high) == (0.0, 0.338271)
    method = mc.Method("hybrid", settings={"n_initial": 2, "samples": 1})
    result = mc.minimize(lambda c: (c["x"] - 0.612345) ** 2, space, 5, optimizer=method, progress=False)
    assert all(holds(t.config) for t in result.history)


def test_products_of_wide_steps_are_exact() -> None:
    """A product of two reals has a safety margin. With steps the product is exact, also in equations."""
    space = mc.Space("product", expand_limit=2)
    kind = space.categorical("kind", ["a", "b"])
    x, y = space.real("x", 0.1, 0.6, step=0.1), space.real("y", 0.5, 2, step=0.25, when=kind["a"])
    space.rule("product", x * y == 0.3, when=kind["a"])
    space.rule("square", x * x <= 0.25)
    expected = {(k / 10, l / 4) for k in range(1, 6) for l in range(2, 9) if k * l == 12}
    found = {(c["x"], c["y"]) for c in space.sample(40) if c["kind"] == "a"}
    assert found == expected
    assert space.optimum(x, "maximize").value == 0.5


# -- equations over wide integers -------------------------------------------------------------------------------------


@given(st.data())
def test_moves_preserve_equations_and_span_their_whole_solutions(data: st.DataObject) -> None:
    m, k = data.draw(st.integers(1, 3)), data.draw(st.integers(2, 5))
    rows = np.array([[data.draw(st.integers(-9, 9)) for _ in range(k)] for _ in range(m)], dtype=float)
    step = np.array([data.draw(st.sampled_from([0.5, 1.0, 6.0])) for _ in range(k)])
    moves = directions_of(rows, np.ones(k, dtype=bool), step)
    assert np.array_equal(moves @ rows.T, np.zeros((len(moves), m)))
    assert np.array_equal(moves / step, np.round(moves / step))
    if m > 1:
        assert np.linalg.matrix_rank(moves) == k - np.linalg.matrix_rank(rows)


def equations(*steps: int, total: int, factors: tuple[int, ...] = ()) -> mc.Space:
    space = mc.Space("equation")
    x = [space.integer(f"x{k}", 0, 1000 // step * step, step=step) for k, step in enumerate(steps)]
    space.rule("sum", sum(c * v for c, v in zip(factors or (1,) * len(x), x, strict=True)) == total)
    return space


def table() -> mc.Space:
    space = mc.Space("table")
    x = [[space.integer(f"x{i}{j}", 0, 1000) for j in range(3)] for i in range(3)]
    for i in range(3):
        space.rule(f"row {i}", sum(x[i]) == 900)
        space.rule(f"column {i}", sum(row[i] for row in x) == 900)
    return space


@pytest.mark.parametrize(
    "space",
    [
        equations(1, 1, total=900, factors=(2, 3)),
        equations(12, 18, total=1002),
        equations(6, 10, 15, total=1001),
        table(),
    ],
    ids=["coefficients", "steps", "three steps", "fixed sums"],
)
def test_samples_of_wide_integers_in_equations_are_spread(space: mc.Space) -> None:
    found = space.sample(30)
    assert all(map(space.is_legal, found))
    (name, *_), middle = space.parameters, [500 < v + 250 < 1000 for c in found for v in c.values()]
    assert len({c[name] for c in found}) >= 12
    assert sum(middle) > len(middle) / 6  # not at the ends alone


def test_equations_without_solutions_are_seen_by_their_divisor() -> None:
    """A solver alone would search a billion integers for a smaller move."""
    for steps, factors, total, nearest in (((1, 1), (2, 4), 777, "776"), ((12, 18), (1, 1), 10**8 + 1, "100000002")):
        space = mc.Space("empty")
        x = [space.integer(f"x{k}", 0, 10**9 // step * step, step=step) for k, step in enumerate(steps)]
        space.rule("sum", sum(c * v for c, v in zip(factors, x, strict=True)) == total)
        assert f"{nearest} suffices" in space.explain()
        with pytest.raises(mc.errors.InfeasibleSpaceError):
            space.sample(1)


def test_equations_with_a_solution_have_it_after_division_by_a_common_divisor() -> None:
    """24500000 times the double nearest to 1 / 3500000 is a little more than 7, and no whole number."""
    for unit, at in ((3_500_000, 7), (1_507_004, 14), (450_000, 58), (1_693_179, 21), (3_559_000, 57)):
        space = mc.Space("divided", expand_limit=64)
        a, _ = space.integer("a", 0, 60), space.real("x", 0, 1)
        space.rule("equation", unit * a == unit * at)
        best = space.optimum(a, direction="maximize", solver="highs")
        assert best.status == "optimal"
        assert best.value == at
        assert space.explain(solver="highs") == "space 'divided' is not empty"


def test_an_optimum_at_the_border_of_a_rule_over_a_product_of_integers() -> None:
    """The product is whole, so that no tolerance decides. As a real, HiGHS called 104 optimal."""
    space = mc.Space("border", expand_limit=4)
    v, c = space.integer("v", 1, 2), space.integer("c", -3, 0, step=3)
    w = [space.integer("w0", 0, 15, step=3), space.integer("w1", 100, 110, step=2), space.integer("w2", 0, 5)]
    space.rule("r0", -200.0 * w[0] - 0.02 * v == -3000.04)
    space.rule("r1", c * v.is_(1) + w[2] == 2.0, when=v.is_(2))
    space.rule("r2", 3.0 * v * c.is_(-3) + 0.002 * w[2] * w[1] + 2000.0 * v <= 4000.424)
    assert space.optimum(w[1], "maximize", solver="highs").value == 106
