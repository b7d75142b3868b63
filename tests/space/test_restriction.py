"""Restricted domains: exactly the legal configurations with the fixed values, for every kind of parameter."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from pyomo.gdp import Disjunction

import mipcash as mc
from mipcash.backends.task import SolverSettings
from mipcash.errors import InfeasibleSpaceError, SolverError, SpaceError, SpaceExhaustedError
from mipcash.program.forms import QuadraticForm
from mipcash.program.legality import legality_at
from mipcash.program.points import Point
from mipcash.space.domain import Domain
from tests.spaces import ALL, bound_numbers, continuous, conv_net, designed, discrete

LIMITS = SolverSettings(gap=0.0)


def logical() -> mc.Space:
    """Space with a disjunction, whose rows come from a transformed clone, and integers under two conditions."""
    space = mc.Space("logical")
    kind, size = space.categorical("kind", ["a", "b", "c"]), space.integer("size", 0, 3)
    space.integer("deep", 1, 3, when=[kind.is_("b", "c"), size.is_(2, 3)])
    space.integer("wide", 0, 200, when=[kind.is_("b", "c"), size.is_(2, 3)])
    space.model.either = Disjunction(expr=[[size <= 1], [kind["c"] >= 1]])
    return space


def orders() -> mc.Space:
    """Space with an ordering of modules that have hyperparameters."""
    space = mc.Space("orders")
    a = space.module("a", {"x": {}, "y": {"n": mc.Integer(1, 3)}})
    b = space.module("b", {"x": {}, "y": {}})
    c = space.module("c", {"x": {}, "y": {"m": mc.Ordinal((1, 2))}})
    order = space.ordering("order", [a, b, c])
    space.rule("b late where a is y", order.position(b) >= 2 * a["y"])
    return space


DISCRETE: dict[str, tuple[Callable[[], mc.Space], list[dict[str, object]]]] = {
    "discrete": (discrete, [{"depth": 4}, {"colour": "green", "b1": 1, "b2": 1}]),
    "logical": (logical, [{"kind": "c"}, {"deep": 2}, {"wide": 0, "deep": 1}]),
    "orders": (orders, [{"order": ("a", "b", "c")}, {"a.y.n": 2, "c": "x"}]),
}
CASES = [(name, fixed) for name, (_, listed) in DISCRETE.items() for fixed in listed]


def every_point(domain: Domain) -> list[Point]:
    """Return all effective levels of the complete space, with wide integers at a few values."""
    latent = np.array(list(itertools.product(*(range(len(g.values)) for g in domain.program.groups))), dtype=np.int64)
    orders = {g.parameter for g in domain.program.groups if g.kind == "ordering"}
    for label in orders:  # positions that are no permutation are no point
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
def test_minima_samples_and_designs_are_those_of_the_space_with_the_values(name: str, fixed: dict[str, object]) -> None:
    space = DISCRETE[name][0]()
    domain = Domain.of(space)
    part, rng = domain.restricted(fixed), np.random.default_rng(0)
    legal = [p for p in every_point(domain) if part.is_legal(p)]
    linear = np.zeros(part.program.n)
    linear[: part.program.n_z] = rng.normal(size=part.program.n_z)
    best = min(float(linear[: part.program.n_z] @ p.one_hot(domain.program)) for p in legal)
    form = replace(QuadraticForm.zero(part.program.n), linear=linear)
    for again in (None, rng):  # without and with local search
        answer = part.minimise(form, LIMITS, rng=again)
        assert answer.status == "optimal"
        assert (answer.value, answer.bound) == (pytest.approx(best, abs=1e-6), pytest.approx(best, abs=1e-6))
        config = part.space.configuration(part.program.levels_of(answer.columns), answer.columns)
        assert all(config.get(label) == value for label, value in fixed.items())
    for config in part.sample(10, rng):
        assert space.is_legal(config)
        assert all(config.get(label) == value for label, value in fixed.items())
    expected = {told(part.raw(p)) for p in legal}
    if ("wide" in space.parameters and "wide" not in fixed) or len(expected) > 12:
        return
    made = designed(part, len(expected), rng)
    assert {told(c) for c in made} == expected
    with pytest.raises(SpaceExhaustedError):
        part.design(rng, before=made)


NUMBERS = [
    (bound_numbers, {"extra": 1.75, "size": 40}),
    (conv_net, {"scaler.quantile.n_quantiles": 77, "k": 4}),
    (continuous, {"x0": 0.2}),
    (continuous, {"x0": 1 / 3, "x1": 1 / 3}),
]


@pytest.mark.parametrize(("make", "fixed"), NUMBERS, ids=lambda given: getattr(given, "__name__", str(given)))
def test_fixed_numbers_keep_their_values(make: Callable[[], mc.Space], fixed: dict[str, object]) -> None:
    space = make()
    domain = Domain.of(space)
    part, rng = domain.restricted(fixed), np.random.default_rng(2)
    configs = part.sample(8, rng)
    configs.append(part.design(rng)[0])
    points = part.encode(configs)
    for config, point in zip(configs, points, strict=True):
        assert space.is_legal(config)
        assert {label: config.get(label) for label in fixed} == fixed
        assert part.is_legal(point)
        assert domain.is_legal(point)
        assert {label: part.decode(point).get(label) for label in fixed} == fixed
    # a legal configuration of the space belongs to the restricted domain if and only if it has the fixed values
    for config, point in zip(seen := domain.sample(10, rng), domain.encode(seen), strict=True):
        assert part.is_legal(point) == all(config.get(label) == value for label, value in fixed.items())
    assert part.nearest(seen[0]).items() >= fixed.items()
    if len(configs[0]) > len(fixed):
        assert part.repeats(configs[0], configs)


def test_a_restricted_domain_can_be_restricted_further() -> None:
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


def test_values_that_cannot_be_fixed_are_refused_by_name() -> None:
    domain = Domain.of(discrete())
    with pytest.raises(SpaceError, match="no parameter 'hue' to fix; it has"):
        domain.restricted({"hue": 1})
    with pytest.raises(SpaceError, match=r"'colour' cannot be fixed: .*'mauve'"):
        domain.restricted({"colour": "mauve"})
    with pytest.raises(InfeasibleSpaceError, match=r"b0 = 1, b1 = 1, b2 = 1: rule 'at most two' cannot hold there"):
        domain.restricted({"b0": 1, "b1": 1, "b2": 1})
    with pytest.raises(InfeasibleSpaceError, match="its conditions do not admit them"):
        domain.restricted({"colour": "blue", "depth": 1})
    numbers = Domain.of(bound_numbers())
    with pytest.raises(SpaceError, match="'size' cannot be fixed"):
        numbers.restricted({"size": 301})
    with pytest.raises(InfeasibleSpaceError, match="'memory'"):
        numbers.restricted({"size": 300})


def test_a_restriction_to_no_values_is_the_whole_space_and_restricting_changes_no_space() -> None:
    space = discrete()
    domain, before = Domain.of(space), space.count()
    part = domain.restricted({})
    assert not part.fixed
    assert part.sample(5, np.random.default_rng(0)) == domain.sample(5, np.random.default_rng(0))
    domain.restricted({"colour": "red"})
    assert space.count() == before


# -- domains ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_decoding_returns_the_encoded_configuration(name: str):
    space = ALL[name]()
    domain = Domain.of(space, "highs")
    configs = domain.sample(12, np.random.default_rng(0))
    points = domain.encode(configs)
    assert points.levels.shape == (12, len(domain.program.groups))
    assert points.units.shape == (12, len(domain.scale))
    for config, point in zip(configs, points, strict=True):
        assert domain.is_legal(point)
        assert domain.repeats(domain.decode(point), [config])
        assert space.is_legal(domain.decode(point))


def test_an_illegal_point_is_reported_and_not_decoded():
    domain = Domain.of(discrete())
    (point,) = domain.encode([{"b0": 1, "b1": 1, "b2": 1, "b3": 0, "colour": "green"}])
    assert not domain.is_legal(point)
    with pytest.raises(SolverError, match="at most two"):
        domain.decode(point)


def test_a_domain_stays_as_it_was_made():
    space = bound_numbers()
    domain = Domain.of(space)
    space.real("later", 0.0, 1.0)
    space.integer("later too", 0, 5)
    (config,) = domain.sample(1, np.random.default_rng(0))
    assert "later" not in config
    (point,) = domain.encode([config])
    assert domain.decode(point).keys() == config.keys()
    assert domain.nearest({"a": 0.25}).keys() <= {*config, "extra"}
    assert "later" in Domain.of(space).sample(1, np.random.default_rng(0))[0]
