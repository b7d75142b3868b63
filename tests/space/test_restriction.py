"""A restricted domain holds exactly the legal configurations that have the values, whatever they are of."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunction

import mipcash as mc
from mipcash.acquisition.continuous_step import ContinuousStep
from mipcash.backends.task import SolverSettings
from mipcash.errors import InfeasibleSpaceError, SpaceError, SpaceExhaustedError
from mipcash.program.forms import QuadraticForm
from mipcash.program.legality import legality_at
from mipcash.program.points import Point
from mipcash.space.domain import Domain
from tests.spaces import bound_numbers, continuous, conv_net, discrete

LIMITS = SolverSettings(gap=0.0)


def logical() -> mc.Space:
    """A disjunction, so that rows are those of a transformed clone; a number that is on under two conditions."""
    space = mc.Space("logical")
    kind, size = space.categorical("kind", ["a", "b", "c"]), space.integer("size", 0, 3)
    space.integer("deep", 1, 3, when=[kind.is_("b", "c"), size.is_(2, 3)])
    space.integer("wide", 0, 200, when=[kind.is_("b", "c"), size.is_(2, 3)])
    space.model.either = Disjunction(expr=[[size <= 1], [kind["c"] >= 1]])
    return space


def orders() -> mc.Space:
    """Modules in an order, with hyperparameters of their own."""
    space = mc.Space("orders")
    a = space.module("a", {"x": {}, "y": {"n": mc.Integer(1, 3)}})
    b = space.module("b", {"x": {}, "y": {}})
    c = space.module("c", {"x": {}, "y": {"m": mc.Ordinal((1, 2))}})
    order = space.ordering("order", [a, b, c])
    space.rule("b late where a is y", order.position(b) >= 2 * a["y"])
    return space


def adopted() -> mc.Space:
    """Parameters that are variables of a Pyomo model."""
    model = pyo.ConcreteModel("adopted")
    model.k = pyo.Var(domain=pyo.Integers, bounds=(0, 3))
    model.b = pyo.Var(domain=pyo.Binary)
    model.flag = pyo.BooleanVar()
    model.c = pyo.Constraint(expr=model.k + 2 * model.b <= 4)
    model.logic = pyo.LogicalConstraint(expr=model.flag.implies(model.flag))
    model.use = pyo.Constraint(expr=model.k >= model.b)
    return mc.Space.from_pyomo(model)


DISCRETE = {
    "discrete": (
        discrete,
        [{"colour": "red"}, {"depth": 4}, {"b0": 1, "b3": 0}, {"colour": "green", "b1": 1, "b2": 1}],
    ),
    "logical": (
        logical,
        [{"kind": "c"}, {"deep": 2}, {"size": 3}, {"kind": "b"}, {"wide": 17}, {"wide": 0, "deep": 1}],
    ),
    "orders": (orders, [{"a": "y"}, {"order": ("a", "b", "c")}, {"a.y.n": 2, "c": "x"}, {"c.y.m": 1, "b": "y"}]),
    "adopted": (adopted, [{"k": 2}, {"b": 1}, {"flag": True}, {"b": 1, "flag": False}]),
}
CASES = [(name, fixed) for name, (_, listed) in DISCRETE.items() for fixed in listed]


def every_point(domain: Domain) -> list[Point]:
    """All effective levels of the whole space; wide integers at a few values."""
    latent = np.array(list(itertools.product(*(range(len(g.values)) for g in domain.program.groups))), dtype=np.int64)
    orders = {g.parameter for g in domain.program.groups if g.kind == "ordering"}
    for label in orders:  # positions that are no order are no point
        members = [g for g, group in enumerate(domain.program.groups) if group.parameter == label]
        latent = latent[[len(set(row[members])) == len(members) for row in latent]]
    levels = np.unique(legality_at(domain.program, None).effective(latent), axis=0)
    units = [np.array(u) for u in itertools.product((0.0, 17 / 200, 1.0), repeat=len(domain.scale))]
    return [Point(s, u) for s in levels for u in units]


def told(config: dict[str, object]) -> tuple[tuple[str, object], ...]:
    return tuple(sorted(config.items()))


@pytest.mark.parametrize(("name", "fixed"), CASES, ids=str)
def test_legal_points_are_exactly_those_of_the_space_with_the_values(name: str, fixed: dict[str, object]) -> None:
    domain = Domain.of(DISCRETE[name][0]())
    part = domain.restricted(fixed)
    assert part.fixed == fixed
    inside = 0
    for point in every_point(domain):
        config = domain.raw(point)
        expected = domain.is_legal(point) and all(config.get(label) == value for label, value in fixed.items())
        assert part.is_legal(point) == expected, (fixed, config)
        inside += expected
        if expected:
            assert told(part.decode(point)) == told(config)
            (again,) = part.encode([config])
            assert np.array_equal(again.levels, point.levels)
    assert inside


@pytest.mark.parametrize(("name", "fixed"), CASES, ids=str)
def test_minima_are_those_of_the_space_with_the_values(name: str, fixed: dict[str, object]) -> None:
    domain = Domain.of(DISCRETE[name][0]())
    part, rng = domain.restricted(fixed), np.random.default_rng(0)
    legal = [p for p in every_point(domain) if part.is_legal(p)]
    for _ in range(3):
        linear = np.zeros(part.program.n)
        linear[: part.program.n_z] = rng.normal(size=part.program.n_z)
        best = min(float(linear[: part.program.n_z] @ p.one_hot(domain.program)) for p in legal)
        form = replace(QuadraticForm.zero(part.program.n), linear=linear)
        for again in (None, rng):  # without and with local search
            answer = part.minimise(form, LIMITS, rng=again)
            assert answer.status == "optimal"
            assert answer.value == pytest.approx(best, abs=1e-6)
            assert answer.bound == pytest.approx(best, abs=1e-6)
            assert answer.columns is not None
            config = part.space.configuration(part.program.levels_of(answer.columns), answer.columns)
            assert all(config.get(label) == value for label, value in fixed.items())


@pytest.mark.parametrize(("name", "fixed"), CASES, ids=str)
def test_samples_and_designs_stay_inside_and_come_to_an_end(name: str, fixed: dict[str, object]) -> None:
    space = DISCRETE[name][0]()
    part, rng = Domain.of(space).restricted(fixed), np.random.default_rng(1)
    for config in part.sample(20, rng):
        assert space.is_legal(config)
        assert all(config.get(label) == value for label, value in fixed.items())
    if "wide" in space.parameters and "wide" not in fixed:
        return
    legal = {told(part.raw(p)) for p in every_point(Domain.of(space)) if part.is_legal(p)}
    if len(legal) > 25:
        return
    made = [config for config, _ in part.design(len(legal), rng)]
    assert {told(c) for c in made} == legal
    with pytest.raises(SpaceExhaustedError):
        part.design(1, rng, before=made)


NUMBERS = [
    (bound_numbers, {"a": 0.25}),
    (bound_numbers, {"kind": "deep", "level": 3}),
    (bound_numbers, {"extra": 1.75, "size": 40}),
    (conv_net, {"lr": 1e-3}),
    (conv_net, {"scaler": "quantile", "order": ("scaler", "selector")}),
    (conv_net, {"scaler.quantile.n_quantiles": 77, "k": 4}),
    (continuous, {"x0": 0.2}),
    (continuous, {"x0": 1 / 3, "x1": 1 / 3}),
]


@pytest.mark.parametrize(("make", "fixed"), NUMBERS, ids=lambda given: getattr(given, "__name__", str(given)))
def test_numbers_that_are_held_stay_where_they_are(make: Callable[[], mc.Space], fixed: dict[str, object]) -> None:
    space = make()
    domain = Domain.of(space)
    part, rng = domain.restricted(fixed), np.random.default_rng(2)
    configs = part.sample(15, rng)
    configs += [config for config, _ in part.design(1, rng)]
    points = part.encode(configs)
    for config, point in zip(configs, points, strict=True):
        assert space.is_legal(config)
        assert {label: config.get(label) for label in fixed} == fixed
        assert part.is_legal(point)
        assert domain.is_legal(point)
        assert {label: part.decode(point).get(label) for label in fixed} == fixed
    # a legal configuration of the space is one of the part if, and only if, it has the values
    for config, point in zip(seen := domain.sample(30, rng), domain.encode(seen), strict=True):
        assert part.is_legal(point) == all(config.get(label) == value for label, value in fixed.items())
    assert part.nearest(seen[0]).items() >= fixed.items()
    if len(configs[0]) > len(fixed):
        assert part.repeats(configs[0], configs)


def test_the_continuous_step_and_walks_stay_inside() -> None:
    class Square:
        """sum_d (u_d - 0.9)^2."""

        def section(self, z: np.ndarray) -> object:
            return lambda u: (float(np.sum((u - 0.9) ** 2)), 2.0 * (u - 0.9))

    part, rng = Domain.of(bound_numbers()).restricted({"a": 0.25, "level": 1}), np.random.default_rng(0)
    (point,) = part.encode(part.sample(1, rng))
    for _ in range(5):
        legal = part.legal_numbers(point.levels)
        assert legal is not None
        natural = part.scale.natural(point.units)
        walked = legal.walk(np.array([natural[label] for label in legal.labels]), 20, rng)
        assert dict(zip(legal.labels, walked.tolist(), strict=True))["a"] == pytest.approx(0.25, abs=1e-9)
    units = ContinuousStep(part, 1, 1e-6).minimise(Square(), point, rng)
    moved = part.decode(Point(point.levels, units))
    assert moved["a"] == 0.25
    assert part.scale.to_unit(moved)[1] > part.scale.to_unit({"b": 0.5})[0]


def test_a_restriction_is_restricted_further() -> None:
    domain = Domain.of(discrete())
    part = domain.restricted({"colour": "red"}).restricted({"depth": 2, "b0": 1})
    assert part.fixed == {"colour": "red", "depth": 2, "b0": 1}
    assert {told(c) for c in part.sample(30, np.random.default_rng(0))} == {
        told({"b0": 1, "b1": b1, "b2": b2, "b3": b3, "colour": "red", "depth": 2})
        for b1, b2, b3 in itertools.product((0, 1), repeat=3)
        if b1 + b2 + b3 <= 1
    }
    with pytest.raises(InfeasibleSpaceError, match="depth = 2"):
        domain.restricted({"depth": 2}).restricted({"colour": "blue"})


def test_what_cannot_be_held_is_refused_by_name() -> None:
    domain = Domain.of(discrete())
    with pytest.raises(SpaceError, match="no parameter 'hue' to hold; it has"):
        domain.restricted({"hue": 1})
    with pytest.raises(SpaceError, match=r"'colour' cannot be held: .*'mauve'"):
        domain.restricted({"colour": "mauve"})
    with pytest.raises(InfeasibleSpaceError, match=r"b0 = 1, b1 = 1, b2 = 1: rule 'at most two' cannot hold there"):
        domain.restricted({"b0": 1, "b1": 1, "b2": 1})
    with pytest.raises(InfeasibleSpaceError, match="its conditions do not admit them"):
        domain.restricted({"colour": "blue", "depth": 1})
    numbers = Domain.of(bound_numbers())
    with pytest.raises(SpaceError, match="'size' cannot be held"):
        numbers.restricted({"size": 301})
    with pytest.raises(InfeasibleSpaceError, match="'memory'"):
        numbers.restricted({"size": 300})


def test_nothing_held_is_the_whole_space() -> None:
    domain = Domain.of(discrete())
    part = domain.restricted({})
    assert not part.fixed
    assert [told(c) for c in part.sample(9, np.random.default_rng(0))] == [
        told(c) for c in domain.sample(9, np.random.default_rng(0))
    ]


def test_the_space_itself_is_as_it_was() -> None:
    space = discrete()
    before = space.count()
    Domain.of(space).restricted({"colour": "red"})
    assert space.count() == before
    assert space.is_legal({"b0": 0, "b1": 0, "b2": 0, "b3": 0, "colour": "blue"})
