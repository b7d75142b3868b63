"""A domain goes between configurations and points, and says which points are legal."""

from __future__ import annotations

import numpy as np
import pytest

from mipcash.errors import SolverError
from mipcash.space.domain import Domain
from tests.spaces import ALL, bound_numbers, discrete


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
