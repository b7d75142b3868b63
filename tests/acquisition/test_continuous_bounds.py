"""Bounds of sums of cosines: below the function everywhere, closing with more splits, at any frequency."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mipcash.methods.mivabo.decomposition.continuous_bounds import CosineSums, box_bounds, lower_bounds


def sums(seed, size, cosines, frequency, functions=3):
    rng = np.random.default_rng(seed)
    omega = frequency * rng.normal(size=(cosines, size))
    omega[rng.random(omega.shape) < 0.3] = 0.0  # cosines of fewer numbers, and constants
    return CosineSums(omega, rng.uniform(0, 2 * np.pi, cosines), rng.normal(size=(functions, cosines)))


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    size=st.integers(1, 4),
    cosines=st.integers(1, 12),
    frequency=st.sampled_from([0.1, 1.0, 3.0, 30.0]),
    splits=st.sampled_from([0, 1, 5, 40]),
)
def test_no_point_of_the_box_is_below_the_bound(seed, size, cosines, frequency, splits):
    s = sums(seed, size, cosines, frequency)
    rng = np.random.default_rng(seed + 1)
    low = rng.random(size) * 0.5
    high = low + rng.random(size) * (1 - low) * (rng.random(size) < 0.8)  # some numbers are held
    found = lower_bounds(s, low, high, splits)
    assert np.all((found.points >= low - 1e-12) & (found.points <= high + 1e-12))
    np.testing.assert_allclose(found.values, s(found.points))
    assert np.all(found.lower <= found.values)
    points = np.concatenate([low + rng.random((400, size)) * (high - low), found.points])
    values = np.cos(points @ s.omega.T + s.phase) @ s.amplitude.T
    assert np.all(found.lower <= values.min(axis=0) + 1e-12)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_more_splits_close_the_gap(size):
    s = sums(5, size, 10, 2.0)
    low, high = np.zeros(size), np.ones(size)
    gaps = [np.max(b.values - b.lower) for b in (lower_bounds(s, low, high, n) for n in (0, 8, 64, 600))]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-3
    assert gaps[-1] < 0.02 * gaps[0]


def test_one_box_is_tight_when_it_is_small():
    s = sums(1, 3, 8, 2.0)
    centre = np.full((3, 3), 0.4)
    for radius in (1e-1, 1e-2, 1e-3):
        found = box_bounds(s, centre - radius, centre + radius)
        corners = np.stack(np.meshgrid(*[(-1, 0, 1)] * 3), axis=-1).reshape(-1, 3) * radius + 0.4
        least = (np.cos(corners @ s.omega.T + s.phase) @ s.amplitude.T).min(axis=0)
        assert np.all(found.lower <= least)
        assert np.all(least - found.lower < 60 * radius**2)
    point = box_bounds(s, centre, centre)
    np.testing.assert_allclose(point.lower, s(centre), atol=1e-10)


def test_parts_that_share_no_number_are_added():
    left, right = sums(2, 1, 5, 2.0), sums(3, 1, 5, 2.0)
    omega = np.zeros((10, 2))
    omega[:5, :1], omega[5:, 1:] = left.omega, right.omega
    both = CosineSums(
        omega, np.concatenate([left.phase, right.phase]), np.concatenate([left.amplitude, right.amplitude], axis=1)
    )
    ends = np.zeros(1), np.ones(1)
    found = lower_bounds(both, np.zeros(2), np.ones(2), 30)
    parts = [lower_bounds(s, *ends, 30).lower for s in (left, right)]
    np.testing.assert_allclose(found.lower, parts[0] + parts[1], atol=1e-9)
