"""The step over numbers under rules: constraints against finite differences, end points against closed forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest

import mipcash as mc
from mipcash.acquisition import continuous_step
from mipcash.acquisition.continuous_step import ContinuousStep, _BoundNumbers
from mipcash.program.forms import Vector
from mipcash.program.points import Point
from mipcash.space.domain import Domain
from mipcash.surrogates.protocols import Section
from tests.space.test_recorded import loose, products, whole_numbers


class Distance:
    """Squared distance to a target on the unit scale, whatever the levels."""

    def __init__(self, target: Vector) -> None:
        self.target = target

    def section(self, z: Vector) -> Section:
        def function(u: Vector) -> tuple[float, Vector]:
            return float(((u - self.target) ** 2).sum()), 2.0 * (u - self.target)

        return function


@pytest.mark.parametrize("declare", [loose, products, whole_numbers])
@pytest.mark.parametrize("part", [False, True])
def test_constraints_are_the_rules_and_have_their_gradients(declare: Callable[[mc.Space], Any], part: bool) -> None:
    """For all numbers, or for half of them while the others stay."""
    space, rng = mc.Space("rules", expand_limit=32), np.random.default_rng(0)
    declare(space)
    domain = Domain.of(space)
    for config in domain.sample(3, rng):
        point = domain.encode([config])[0]
        legal = domain.legal_numbers(point.levels)
        assert legal is not None
        rules, at = legal.parts[0], [domain.scale.labels.index(label) for label in legal.parts[0].labels]
        active = np.array(sorted(at)[::2] if part else sorted({*at, len(domain.scale) - 1}))
        numbers = _BoundNumbers(rules, domain.scale, point.units, active)
        for x in rng.uniform(0.1, 0.9, (5, len(active))):
            units = point.units.copy()
            units[active] = x
            values = domain.scale.relaxed(np.array(at), units[at])[0]
            body, least, most = rules.body(values), rules.row_low, rules.row_high
            rows = list(zip(body, least, most, strict=True))
            room = {"eq": [b - l for b, l, h in rows if l == h]}
            room["ineq"] = [b - l for b, l, h in rows if l != h and l > -np.inf]
            room["ineq"] += [h - b for b, l, h in rows if l != h and h < np.inf]
            found: list[Any] = numbers.constraints()
            assert [c["type"] for c in found] == [kind for kind, wanted in room.items() if wanted]
            for constraint in found:
                assert constraint["fun"](x) == pytest.approx(room[constraint["type"]])
                steps = 1e-6 * np.eye(len(x))
                slopes = [(constraint["fun"](x + h) - constraint["fun"](x - h)) / 2e-6 for h in steps]
                assert constraint["jac"](x) == pytest.approx(np.array(slopes).T, rel=1e-4, abs=1e-3)
            beyond = np.maximum(least - body, body - most) - rules.slack
            flat, largest = ~rules.curved, np.abs(rules.linear).max(axis=1)
            assert (numbers.missed(x) * largest)[flat] == pytest.approx(beyond[flat], rel=1e-9, abs=1e-9)
            one = numbers.under(np.array([len(body) - 1]))
            assert one.missed(x) == pytest.approx(numbers.missed(x)[-1:])


def nearest_on_simplex(v: Vector) -> Vector:
    """The point of ``x >= 0, sum x = 1`` nearest to v, by sorting."""
    ordered = np.sort(v)[::-1]
    excess = (np.cumsum(ordered) - 1.0) / np.arange(1, len(v) + 1)
    return np.maximum(v - excess[np.flatnonzero(ordered > excess)[-1]], 0.0)


@pytest.mark.parametrize("seed", range(5))
def test_the_step_finds_the_nearest_point_of_a_simplex(seed: int) -> None:
    space, rng = mc.Space("simplex"), np.random.default_rng(seed)
    space.rule("all", sum(space.real(f"x{k}", 0, 1) for k in range(5)) == 1)
    domain, target = Domain.of(space), rng.uniform(-0.3, 1.0, 5)
    point = domain.encode(domain.sample(1, rng))[0]
    found = ContinuousStep(domain, 0, 1e-9).minimise(Distance(target), point, rng)
    assert found == pytest.approx(nearest_on_simplex(target), abs=1e-3)
    assert domain.is_legal(Point(point.levels, found))


@pytest.mark.parametrize("many", [400, 5])
@pytest.mark.parametrize("seed", range(4))
def test_rules_that_are_added_as_they_are_violated_give_the_same_end_point(
    seed: int, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nearest point of a ball that 40 tangents enclose is close to the one on the ball."""
    monkeypatch.setattr(continuous_step, "MANY", many)
    space, rng = mc.Space("tangents"), np.random.default_rng(seed)
    x, y = space.real("x", -2, 2), space.real("y", -2, 2)
    for k, angle in enumerate(rng.permutation(40) * 2 * np.pi / 40):
        space.rule(f"tangent {k}", float(np.cos(angle)) * x + float(np.sin(angle)) * y <= 1)
    domain, direction = Domain.of(space), rng.uniform(0, 2 * np.pi)
    ray = np.array([np.cos(direction), np.sin(direction)])
    point = domain.encode([{"x": 0.1, "y": -0.2}])[0]
    found = ContinuousStep(domain, 0, 1e-9).minimise(Distance((1.8 * ray + 2) / 4), point, rng)
    natural = 4 * found - 2
    assert np.linalg.norm(natural) == pytest.approx(1.0, abs=0.004)
    assert natural @ ray == pytest.approx(1.0, abs=0.004)
    assert domain.is_legal(Point(point.levels, found))


def test_free_numbers_go_to_the_target_from_any_start_and_inactive_ones_stay() -> None:
    space = mc.Space("free")
    kind = space.categorical("kind", ["a", "b"])
    space.real("x", 1e-3, 10, log=True)
    space.integer("n", 0, 300)
    space.real("y", 0, 1, when=kind["b"])
    domain, rng = Domain.of(space), np.random.default_rng(0)
    step, target = ContinuousStep(domain, 2, 1e-9), np.array([0.3, 0.7013, 0.9])
    for config, wanted in (({"kind": "a", "x": 0.1, "n": 7}, 0.5), ({"kind": "b", "x": 0.1, "n": 7, "y": 0.1}, 0.9)):
        point = domain.encode([config])[0]
        found = step.minimise(Distance(target), point, rng)
        assert found == pytest.approx([0.3, 210 / 300, wanted], abs=1e-6)
    spread = np.array([step.perturbed(point, rng) for _ in range(300)])
    assert np.abs(np.diff(np.round(spread[:, 1] * 300, 6) % 1.0)).max() == 0.0
    assert (spread >= 0).all()
    assert (spread <= 1).all()
    share = np.where(rng.random(3000) < 0.5, 10.0 ** -rng.uniform(0, 3, 3000), 1.0)
    moves, wanted_moves = spread[:, 0] - point.units[0], 0.15 * share * rng.normal(size=3000)
    assert kstest(np.abs(moves), np.abs(wanted_moves)).pvalue > 1e-3, "every second move is shortened"
    assert kstest(moves, wanted_moves).pvalue > 1e-3
