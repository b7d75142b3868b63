"""A domain goes between configurations and points, and says which points are legal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mipcash.backends.task import SolverSettings
from mipcash.errors import SolverError
from mipcash.program.forms import QuadraticForm
from mipcash.space.domain import Domain
from tests.spaces import ALL, bound_numbers, conv_net, discrete


@pytest.mark.parametrize("name", ALL)
def test_a_configuration_comes_back(name: str):
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


def test_an_illegal_point_is_told_and_not_decoded():
    domain = Domain.of(discrete())
    (point,) = domain.encode([{"b0": 1, "b1": 1, "b2": 1, "b3": 0, "colour": "green"}])
    assert not domain.is_legal(point)
    with pytest.raises(SolverError, match="at most two"):
        domain.decode(point)


def test_the_answer_of_a_minimisation_is_returned():
    domain = Domain.of(bound_numbers())
    linear = np.zeros(domain.program.n)
    (level,) = [g for g in domain.program.groups if g.parameter == "level"]
    linear[level.start : level.stop] = -np.arange(5.0)
    answer = domain.minimise(replace(QuadraticForm.zero(domain.program.n), linear=linear), SolverSettings())
    assert answer.status == "optimal"
    assert answer.value == answer.bound == -4.0
    assert answer.columns is not None
    assert domain.program.levels_of(answer.columns)[domain.program.groups.index(level)] == 4


def test_numbers_are_held_where_a_minimisation_is_asked_at_them():
    domain = Domain.of(bound_numbers())
    units = domain.scale.to_unit({"a": 0.25, "b": 0.5, "size": 200, "extra": 2.0})
    form = QuadraticForm.zero(domain.program.n)
    answer = domain.minimise(form, SolverSettings(), units=units)
    assert answer.columns is not None
    at = {n.label: float(answer.columns[n.latent]) for n in domain.program.numbers}
    assert at == pytest.approx({"a": 0.25, "b": 0.5, "size": 200, "extra": 2.0})


def test_columns_of_a_point_hold_its_levels_and_numbers():
    domain = Domain.of(bound_numbers())
    (point,) = domain.encode(domain.sample(1, np.random.default_rng(3)))
    columns = domain.columns(point)
    assert np.array_equal(domain.program.levels_of(columns), point.levels)
    natural = domain.scale.natural(point.units)
    assert all(columns[n.latent] == natural[n.label] for n in domain.program.numbers)


def test_legal_numbers_beside_levels():
    domain = Domain.of(bound_numbers())
    (point,) = domain.encode(domain.sample(1, np.random.default_rng(1)))
    legal = domain.legal_numbers(point.levels)
    assert legal is not None
    natural = domain.scale.natural(point.units)
    assert legal.legal(np.array([natural[label] for label in legal.labels]))


def test_local_search_stands_in_where_it_can_tell_what_is_legal():
    domain = Domain.of(discrete())
    rng = np.random.default_rng(0)
    form = replace(QuadraticForm.zero(domain.program.n), linear=rng.normal(size=domain.program.n))
    found = domain.incumbent(form, None, [], [], rng)
    answer = domain.minimise(form, SolverSettings())
    assert found is not None
    assert found[1] == pytest.approx(answer.value)
    legality = domain.legality(np.zeros(0))
    assert legality is not None
    assert legality.check(found[0][None])[0]
    assert Domain.of(conv_net()).free_legality is not None


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


def test_designs_repeat_nothing():
    domain = Domain.of(discrete())
    rng = np.random.default_rng(0)
    made = [config for config, _ in domain.design(4, rng)]
    further = [config for config, _ in domain.design(4, rng, before=made)]
    assert not any(domain.repeats(c, made) for c in further)
    assert len(domain.exclusions(made)) == 4
