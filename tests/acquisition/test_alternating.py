"""Alternation: legal at every step, and a fixed point with a proof."""

from __future__ import annotations

import numpy as np
import pytest

from mipcash.acquisition.alternating import AlternatingSettings, Alternation
from mipcash.acquisition.clock import Clock
from mipcash.backends.task import SolverSettings
from mipcash.program.points import Point
from mipcash.space.domain import Domain
from tests.spaces import ALL
from tests.surrogates.test_surrogates import posterior


def setting(name):
    space = ALL[name]()
    f = posterior(space, "evidence")[0].sample(np.random.default_rng(0))
    domain = Domain.of(space)
    starts = domain.encode(space.sample(4, 0))
    return space, f, domain, Alternation(domain, AlternatingSettings()), starts


def value(f, domain, point):
    return f.value(point.one_hot(domain.program), point.units)


@pytest.mark.parametrize("name", list(ALL))
def test_the_end_point_is_legal_and_proven_at_its_numbers(name):
    space, f, domain, alternation, starts = setting(name)
    rng = np.random.default_rng(0)
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


@pytest.mark.parametrize("name", ["conv_net", "bound_numbers"])
def test_the_continuous_step_never_rises_and_stays_legal(name):
    space, f, domain, alternation, _ = setting(name)
    rng = np.random.default_rng(0)
    improved = 0
    for config in domain.encode(space.sample(5, 7)):
        answer = domain.minimise(f.form_at(config.units), SolverSettings(), units=config.units)
        point = Point(domain.program.levels_of(answer.columns), config.units)
        z = point.one_hot(domain.program)
        moved = alternation.step.minimise(f, point, rng, columns=answer.columns)
        masked = np.where(domain.scale.active(z[None])[0] > 0, point.units, 0.5)
        assert f.value(z, moved) <= f.value(z, masked) + 1e-9
        improved += f.value(z, moved) < f.value(z, masked) - 1e-6
        assert space.is_legal(domain.decode(Point(point.levels, moved)))
    assert improved > 1
