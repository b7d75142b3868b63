"""Rules with products of two reals: the complete legal set at any range, and equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.backends.pyomo import backend
from mipcash.backends.registry import solvers
from mipcash.errors import InfeasibleSpaceError
from mipcash.space.compiled import compiled
from mipcash.space.numbers.legal_numbers import NEAREST
from mipcash.space.numbers.part import NumberRules


@pytest.mark.parametrize("high", [1e-6, 1e9])
def test_products_of_reals_are_exact_at_any_range(high: float) -> None:
    """Compare the largest and least sums under a product, its corner and an infeasible product with closed forms."""
    part = 0.01 * high * high

    def space(relation: Any) -> mc.Space:
        made = mc.Space("product")
        made.rule("product", relation(made.real("x", 0, high), made.real("y", 0, high)))
        return made

    below, above = space(lambda x, y: x * y <= part), space(lambda x, y: x * y >= part)
    largest = below.optimum(below["x"] + below["y"], "max")
    assert largest.value == pytest.approx(1.01 * high, rel=1e-6)  # one of the two is at its bound
    least = above.optimum(above["x"] + above["y"])
    assert (least.status, least.value) == ("optimal", pytest.approx(0.2 * high, rel=1e-5, abs=1e-9))
    assert least.config["x"] * least.config["y"] >= part * (1 - 1e-9)
    equal = space(lambda x, y: x * y == part).sample(1)
    room = 1e-9 * part * (1 + 1e-6)
    assert all(c["x"] * c["y"] <= part + room for c in below.sample(20))
    assert all(c["x"] * c["y"] >= part - room for c in above.sample(20))
    for config in [*equal, *below.sample(2), *above.sample(2)]:
        assert 0 <= min(config.values()) <= max(config.values()) <= high
    assert all(c["x"] * c["y"] == pytest.approx(part, rel=1e-8) for c in equal)
    (corner,) = space(lambda x, y: x * y >= high * high).sample(1)
    assert (corner["x"], corner["y"]) == (pytest.approx(high, rel=1e-9), pytest.approx(high, rel=1e-9))
    with pytest.raises(InfeasibleSpaceError, match=r"rule 'product' cannot hold within the domains"):
        space(lambda x, y: x * y >= 1.001 * high * high).sample(1)


@pytest.mark.parametrize("corner", [(0.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.08, 0.62)])
def test_a_walk_from_a_corner_does_not_depend_on_the_last_digits_of_its_start(corner: tuple[float, ...]) -> None:
    """From a corner most lines leave the set at once; how many of their points are drawn must not be a matter of rounding."""
    space = mc.Space("corners")
    x = [space.real(f"x{k}", 0, 1) for k in range(4)]
    space.rule("sum", sum(x) <= 1.7)
    space.rule("product", x[0] * x[2] <= 0.08)
    space.rule("above", x[3] >= x[1])
    found = compiled(space)
    legal = found.legal_numbers(np.zeros(0, dtype=np.int64), np.zeros(found.program.n))
    assert legal is not None
    for seed in range(60):
        first, second = np.random.default_rng(seed), np.random.default_rng(seed)
        ends = [
            legal.walk(start, 40, rng)
            for start, rng in ((np.array(corner), first), (np.nextafter(corner, 0.5), second))
        ]
        assert first.bit_generator.state == second.bit_generator.state
        assert np.abs(ends[0] - ends[1]).max() < 1e-9


def test_equations_of_products_have_their_solutions() -> None:
    space = mc.Space("equations")
    x, y = space.real("x", 0, 10), space.real("y", 0, 10)
    space.rule("product", x * y == 6)
    space.rule("sum", x + y == 5)
    assert [space.optimum(x, d).value for d in ("min", "max")] == [pytest.approx(2), pytest.approx(3)]
    root = mc.Space("root")
    x = root.real("x", -5, 5)
    root.rule("square", x * x == 2)
    assert [root.optimum(x, d).value for d in ("min", "max")] == [pytest.approx(-(2**0.5)), pytest.approx(2**0.5)]
    assert root.bounds()["x"].high == pytest.approx(2**0.5)


def test_other_solvers_get_the_products_and_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    model = backend._model
    monkeypatch.setattr(backend, "_model", lambda program, p: (given.append(len(p)), model(program, p))[1])
    space = mc.Space("product")
    kind = space.categorical("kind", ["a", "b"])
    x, y = space.real("x", 1, 1e2, when=kind["a"]), space.real("y", 1, 1e2)
    space.rule("product", x * y + y * y <= 50)
    space.rule("balance", x * y >= 20, when=kind["a"])
    ours = space.optimum(x + y, "max", solver="highs")
    for solver in {"gurobi", "scip", "cplex"} & {s.name for s in solvers() if s.installed}:
        given.clear()
        theirs = space.optimum(x + y, "max", solver=solver, time_limit=None)
        assert max(given, default=0) == (0 if solver == "cplex" else 2)  # x y and y y
        assert (theirs.status, ours.status) == ("optimal", "optimal")
        assert theirs.value == pytest.approx(ours.value, rel=1e-5)


@pytest.mark.parametrize("room", [1e-2, 1e-3, 1e-4, 1e-6])
@pytest.mark.parametrize("solver", sorted({"highs", "gurobi", "scip"} & {s.name for s in solvers() if s.installed}))
def test_the_square_of_a_narrow_range_moves_no_optimum(solver: str, room: float) -> None:
    """SCIP with the tangents of the square as rows called 0.50009 optimal at a room of 1e-4."""
    space = mc.Space("narrow")
    x, y = space.real("x", 0.5, 2.5), space.real("y", 0.5, 2.5)
    space.rule("square", 3.0 * y * y >= 3.0)
    space.rule("sum", y + x <= 1.5 + room)
    found = space.optimum(x, "max", solver=solver)
    assert found.status == "optimal"
    assert found.value == pytest.approx(0.5 + room, rel=1.1e-6)


def test_the_default_comes_near_an_optimum_on_the_border_of_a_product() -> None:
    space = mc.Space("border")
    x, y = space.real("x", 0, 1000), space.real("y", 0, 1000)
    space.rule("product", x * y <= 100)
    found = [
        mc.minimize(lambda c: abs(c["x"] - 10) + abs(c["y"] - 10), space, 60, seed=seed, progress=False).value
        for seed in (0, 1, 2)
    ]
    assert sorted(found)[1] < 1.0  # random search reaches 2.2 to 11


def test_samples_of_an_equation_of_products_are_spread() -> None:
    space = mc.Space("wall")
    d, length = space.real("d", 10, 50), space.real("length", 0.5, 6)
    space.rule("product", space.real("wall", 4, 300) == d * length)
    found = space.sample(30, seed=0)
    assert sum(c["d"] in (10.0, 50.0) or c["length"] in (0.5, 6.0) for c in found) < 10
    assert all(abs(c["wall"] - c["d"] * c["length"]) < 1e-12 * c["wall"] for c in found)


def test_illegal_numbers_are_moved_into_few_of_many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each value of the auxiliary variable makes one part, up to 64. Each part costs several linear programs."""
    space = mc.Space("parts")
    x, y, u = space.real("x", 0, 10), space.real("y", 0, 10), space.auxiliary("u", 1, 60)
    space.rule("above", u <= x * y)
    space.rule("useful", u * x >= 100)
    cleaned: list[int] = []
    clean = NumberRules.clean
    monkeypatch.setattr(NumberRules, "clean", lambda self, x: (cleaned.append(1), clean(self, x))[1])
    inner = compiled(space)
    legal = inner.legal_numbers(np.zeros(0, dtype=np.int64), np.full(inner.program.n, np.nan))
    assert legal is not None
    assert len(legal.parts) == 60
    legal.clean(np.array([1.0, 1.0]))
    assert 0 < len(cleaned) <= NEAREST


@pytest.mark.parametrize("kind", ["integer", "real"])
def test_a_rule_over_a_product_is_relaxed_too(kind: str) -> None:
    space = mc.Space("product")
    a, b = getattr(space, kind)("a", 2, 90), getattr(space, kind)("b", 2, 90)
    space.rule("product", a * b <= 50)
    space.rule("sum", a + b >= 30)
    assert "'product' (a * b <= 50): 56 suffices; or 'sum' (a + b >= 30): 27 suffices" in space.explain()
