"""Continuous feature maps: against the exact kernel, gradients by finite differences, and back from JSON."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mipcash.errors import SpaceError
from mipcash.methods.mivabo.blocks import QuadratureFeatures
from mipcash.methods.mivabo.features.maps import known_map
from mipcash.surrogates.fourier import FourierFeatures

DIMS, LENGTH = np.array([0, 2]), np.array([0.5, 0.8])


def points(n=9, numbers=3, seed=0):
    return np.random.default_rng(seed).random((n, numbers))


def kernel(u, dims, length):
    return np.exp(-0.5 * (((u[:, None, dims] - u[None, :, dims]) / length) ** 2).sum(axis=2))


def maps():
    return {
        "fourier": lambda: FourierFeatures.draw(DIMS, LENGTH, 20, np.random.default_rng(1)),
        "quadrature": lambda: QuadratureFeatures.tensor(DIMS, LENGTH, 7),
    }


@pytest.mark.parametrize("nodes", [16, 17])
def test_quadrature_is_the_kernel_to_machine_precision(nodes):
    u = points()
    made = QuadratureFeatures.tensor(DIMS, LENGTH, nodes)
    assert made.size == nodes**2
    np.testing.assert_allclose(made(u) @ made(u).T, kernel(u, DIMS, LENGTH), atol=1e-9)
    wide = QuadratureFeatures.tensor(DIMS, np.array([1.0, 1.5]), nodes)
    np.testing.assert_allclose(wide(u) @ wide(u).T, kernel(u, DIMS, np.array([1.0, 1.5])), atol=1e-14)


def test_the_error_of_quadrature_falls_exponentially_and_beats_random_features():
    u = points(30)
    exact = kernel(u, DIMS, np.array([0.4, 0.4]))

    def error(made):
        return np.max(np.abs(made(u) @ made(u).T - exact))

    errors = [error(QuadratureFeatures.tensor(DIMS, np.array([0.4, 0.4]), m)) for m in (4, 6, 8, 10, 12)]
    assert all(later < 0.3 * before for before, later in itertools.pairwise(errors))
    random = FourierFeatures.draw(DIMS, np.array([0.4, 0.4]), 64, np.random.default_rng(0))
    assert QuadratureFeatures.tensor(DIMS, np.array([0.4, 0.4]), 8).size == random.size
    assert errors[2] < 0.05 * error(random)


def test_a_grid_that_explodes_is_refused_with_its_size():
    with pytest.raises(SpaceError, match=r"8\^6 = 262144 features.*interactions"):
        QuadratureFeatures.tensor(np.arange(6), np.ones(6), 8)


@pytest.mark.parametrize("name", list(maps()))
def test_gradients_and_bounds(name):
    made = maps()[name]()
    u = points()
    assert made(u).shape == (len(u), made.size)
    assert np.all(np.abs(made(u)) <= made.ceiling + 1e-12)
    for point in u[:3]:
        slopes = made.gradient(point)
        assert slopes.shape == (made.size, 3)
        for d in range(3):
            step = np.zeros(3)
            step[d] = 1e-6
            difference = (made((point + step)[None]) - made((point - step)[None]))[0] / 2e-6
            np.testing.assert_allclose(slopes[:, d], difference, atol=1e-7)


def test_unknown_features_are_refused():
    with pytest.raises(SpaceError, match="did you mean 'fourier'"):
        known_map("fouriers")
