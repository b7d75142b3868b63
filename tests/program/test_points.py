"""A batch of points indexes, joins and goes over into binaries as its rows do."""

from __future__ import annotations

import numpy as np
import pytest

from mipcash.program.points import Point, Points
from mipcash.space.domain import Domain
from tests.spaces import conv_net


def test_rows_are_points_and_points_make_rows():
    levels, units = np.arange(6).reshape(3, 2), np.linspace(0.0, 1.0, 12).reshape(3, 4)
    points = Points(levels, units)
    assert len(points) == 3
    assert np.array_equal(points[1].levels, levels[1])
    assert np.array_equal(points[np.int64(2)].units, units[2])
    for rows in (slice(1, None), [1, 2], np.array([False, True, True])):
        part = points[rows]
        assert np.array_equal(part.levels, levels[1:])
        assert np.array_equal(part.units, units[1:])
    again = Points.of(list(points), 2, 4)
    assert np.array_equal(again.levels, levels)
    assert np.array_equal(again.units, units)
    joined = Points.joined(points[:1], points[1:])
    assert np.array_equal(joined.levels, levels)
    assert np.array_equal(joined.units, units)


def test_no_point_has_a_shape_too():
    none = Points.of([], 3, 2)
    assert none.levels.shape == (0, 3)
    assert none.units.shape == (0, 2)
    assert not list(none)
    assert none.levels.dtype == np.int64
    point = Point(np.array([1, 0, 2]), np.array([0.1, 0.2]))
    assert len(Points.joined(none, Points.of([point], 3, 2))) == 1
    assert len(none[[]]) == 0


def test_levels_and_units_go_together():
    with pytest.raises(ValueError, match="do not go together"):
        Points(np.zeros((2, 3), dtype=np.int64), np.zeros((1, 2)))


def test_binaries():
    domain = Domain.of(conv_net())
    points = domain.encode(domain.sample(5, np.random.default_rng(0)))
    z = points.one_hot(domain.program)
    assert z.shape == (5, domain.program.n_z)
    assert np.array_equal(z.sum(axis=1), np.full(5, len(domain.program.groups)))
    for k, point in enumerate(points):
        assert np.array_equal(point.one_hot(domain.program), z[k])
        assert np.array_equal(domain.program.levels_of(z[k]), point.levels)
