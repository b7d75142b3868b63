"""Alternation: legal at every step, a fixed point with a proof, near the global optimum of small problems."""

from __future__ import annotations

import numpy as np
import pytest

from mipcash.acquisition.alternating import AlternatingSettings, Alternation
from mipcash.acquisition.clock import Clock
from mipcash.backends.task import SolverSettings
from mipcash.program.points import Point
from mipcash.space.domain import Domain
from mipcash.space.exclusion import Exclusion
from tests.spaces import ALL
from tests.surrogates.test_surrogates import posterior


def setting(name, preset="evidence", seed=0):
    space = ALL[name]()
    f = posterior(space, preset)[0].sample(np.random.default_rng(seed))
    domain = Domain.of(space)
    starts = domain.encode(space.sample(4, seed))
    return space, f, domain, Alternation(domain, AlternatingSettings()), starts


def value(f, domain, point):
    return f.value(point.one_hot(domain.program), point.units)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", list(ALL))
def test_the_end_point_is_legal_and_proven_at_its_numbers(name, seed):
    space, f, domain, alternation, starts = setting(name, seed=seed)
    rng = np.random.default_rng(seed)
    found = alternation.minimise(f, starts, [], rng, Clock())
    assert found is not None
    assert space.validate(domain.decode(found.point)) == []
    assert found.answer.status == "optimal"
    assert found.answer.bound <= found.value + 1e-6
    assert value(f, domain, found.point) == pytest.approx(found.value, abs=1e-6)
    # no start is better than the end, and another solve at the same numbers agrees
    for start in starts:
        assert found.value <= value(f, domain, start) + 1e-6
    again = domain.minimise(f.form_at(found.point.units), SolverSettings(), units=found.point.units)
    assert again.value == pytest.approx(found.value, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("name", ["conv_net", "bound_numbers", "continuous"])
def test_the_continuous_step_never_rises_and_stays_legal(name):
    space, f, domain, alternation, _ = setting(name)
    rng = np.random.default_rng(0)
    improved = 0
    for config in domain.encode(space.sample(15, 7)):
        answer = domain.minimise(f.form_at(config.units), SolverSettings(), units=config.units)
        point = Point(domain.program.levels_of(answer.columns), config.units)
        z = point.one_hot(domain.program)
        moved = alternation.step.minimise(f, point, rng, columns=answer.columns)
        masked = np.where(domain.scale.active(z[None])[0] > 0, point.units, 0.5)
        assert f.value(z, moved) <= f.value(z, masked) + 1e-9
        improved += f.value(z, moved) < f.value(z, masked) - 1e-6
        assert space.is_legal(domain.decode(Point(point.levels, moved)))
    assert improved > 5


def test_alternation_finds_the_global_minimum_of_a_small_mixed_function():
    space, f, domain, alternation, _ = setting("bound_numbers")
    rng = np.random.default_rng(3)
    found = alternation.minimise(f, domain.encode(space.sample(12, 11)), [], rng, Clock())
    assert found is not None
    values = [value(f, domain, point) for point in domain.encode(space.sample(200, 5))]
    assert found.value <= min(values) + 1e-9


def test_excluded_levels_are_not_returned():
    _, f, _, alternation, starts = setting("discrete")
    rng = np.random.default_rng(0)
    taken, values = [], []
    for _ in range(6):
        found = alternation.minimise(f, starts, [Exclusion(t) for t in taken], rng, Clock())
        assert found is not None
        assert not any(np.array_equal(found.point.levels, t) for t in taken)
        taken.append(found.point.levels)
        values.append(found.value)
    assert values == sorted(values)
