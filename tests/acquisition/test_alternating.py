"""Alternation: legal at every step, a fixed point with a proof, near the global optimum of small problems."""

from __future__ import annotations

import numpy as np
import pytest

from mipcash.acquisition.alternating import AlternatingSettings, Alternation, Clock
from mipcash.backends.base import SolverSettings
from mipcash.program.unit_scale import UnitScale
from mipcash.space.exclusion import Exclusion
from tests.spaces import ALL
from tests.surrogates.test_surrogates import posterior


def setting(name, preset="evidence", seed=0):
    space = ALL[name]()
    f = posterior(space, preset)[0].sample(np.random.default_rng(seed))
    oracle = space.oracle()
    scale = UnitScale.of(space, oracle.program)
    alternation = Alternation(space, oracle, scale, AlternatingSettings())
    configs = space.sample(4, seed)
    starts = [(oracle.program.encode(c), u) for c, u in zip(configs, scale.units(configs), strict=True)]
    return space, f, oracle, scale, alternation, starts


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", list(ALL))
def test_the_end_point_is_legal_and_proven_at_its_numbers(name, seed):
    space, f, oracle, scale, alternation, starts = setting(name, seed=seed)
    rng = np.random.default_rng(seed)
    found = alternation.minimise(f, starts, [], rng, Clock())
    assert found is not None
    config = space.configuration(found.point, scale.natural(found.units))
    assert space.validate(config) == []
    assert found.point.answer.status == "optimal"
    assert found.point.answer.bound <= found.value + 1e-6
    z = oracle.program.one_hot(found.point.levels)
    assert f.value(z, found.units) == pytest.approx(found.value, abs=1e-6)
    # no start is better than the end, and another solve at the same numbers agrees
    for levels, u in starts:
        assert found.value <= f.value(oracle.program.one_hot(levels), u) + 1e-6
    again = oracle.minimise(f.form_at(found.units), SolverSettings(), numbers=scale.natural(found.units))
    assert again is not None
    assert again.answer.value == pytest.approx(found.value, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("name", ["conv_net", "bound_numbers", "continuous"])
def test_the_continuous_step_never_rises_and_stays_legal(name):
    space, f, oracle, scale, alternation, _ = setting(name)
    rng = np.random.default_rng(0)
    improved = 0
    for config in space.sample(15, 7):
        levels = oracle.program.encode(config)
        u = scale.units([config])[0]
        point = oracle.minimise(f.form_at(u), SolverSettings(), numbers=scale.natural(u))
        assert point is not None
        z = oracle.program.one_hot(point.levels)
        moved = alternation.step.minimise(f, point, u, rng)
        masked = np.where(scale.active(z[None])[0] > 0, u, 0.5)
        assert f.value(z, moved) <= f.value(z, masked) + 1e-9
        improved += f.value(z, moved) < f.value(z, masked) - 1e-6
        assert space.is_legal(space.configuration(point, scale.natural(moved)))
        assert len(levels) == len(point.levels)
    assert improved > 5


def test_alternation_finds_the_global_minimum_of_a_small_mixed_function():
    space, f, oracle, scale, alternation, _ = setting("bound_numbers")
    rng = np.random.default_rng(3)
    configs = space.sample(12, 11)
    starts = [(oracle.program.encode(c), u) for c, u in zip(configs, scale.units(configs), strict=True)]
    found = alternation.minimise(f, starts, [], rng, Clock())
    assert found is not None
    sampled = space.sample(1500, 5)
    z = oracle.program.one_hot(np.array([oracle.program.encode(c) for c in sampled]))
    values = [f.value(b, u) for b, u in zip(z, scale.units(sampled), strict=True)]
    assert found.value <= min(values) + 1e-9


def test_excluded_levels_are_not_returned():
    space, f, _, _, alternation, starts = setting("discrete")
    rng = np.random.default_rng(0)
    taken, values = [], []
    for _ in range(6):
        found = alternation.minimise(f, starts, [Exclusion(t) for t in taken], rng, Clock())
        assert found is not None
        assert not any(np.array_equal(found.point.levels, t) for t in taken)
        taken.append(found.point.levels)
        values.append(found.value)
    assert values == sorted(values)
    assert space is not None
