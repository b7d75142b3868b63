"""Continuous feature maps: against the exact kernel, gradients by finite differences, and back from JSON."""

from __future__ import annotations

import importlib
import itertools

import numpy as np
import pytest

from mipcash.errors import MipcashError, SpaceError
from mipcash.surrogates.fourier import FourierFeatures
from mipcash.surrogates.linear.features import neural
from mipcash.surrogates.linear.features.maps import CosineMap, known_map
from mipcash.surrogates.linear.features.neural import NeuralFeatures, NeuralSettings
from mipcash.surrogates.linear.features.quadrature import QuadratureFeatures

DIMS, LENGTH = np.array([0, 2]), np.array([0.5, 0.8])


def points(n=9, numbers=3, seed=0):
    return np.random.default_rng(seed).random((n, numbers))


def kernel(u, dims, length):
    return np.exp(-0.5 * (((u[:, None, dims] - u[None, :, dims]) / length) ** 2).sum(axis=2))


def learned(seed=0, n=40, steps=150):
    pytest.importorskip("torch")
    u = points(n)
    side = (u[:, 1] > 0.5).astype(float)
    y = np.sin(5 * u[:, 0]) * (2 * side - 1) + u[:, 2]
    context = np.stack([np.ones(n), side], axis=1)
    settings = NeuralSettings(hidden=(12,), steps=steps)
    made = NeuralFeatures.learned(DIMS, u, context, y, 8, np.random.default_rng(seed), settings)
    return made, u, context, y


def maps():
    return {
        "fourier": lambda: FourierFeatures.draw(DIMS, LENGTH, 20, np.random.default_rng(1)),
        "quadrature": lambda: QuadratureFeatures.tensor(DIMS, LENGTH, 7),
        "neural": lambda: learned()[0],
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


@pytest.mark.parametrize("name", list(maps()))
def test_sums_of_cosines_are_known_as_such(name):
    assert isinstance(maps()[name](), CosineMap) == (name != "neural")


def test_a_network_learns_features_that_predict():
    made, u, context, y = learned(n=60, steps=200)
    new, untrained = points(200, seed=5), learned(n=60, steps=0)[0]
    side = (new[:, 1] > 0.5).astype(float)
    truth = np.sin(5 * new[:, 0]) * (2 * side - 1) + new[:, 2]

    def error(features):
        """Of ridge regression on context x features, as the Bayesian model has them."""
        at, to = (
            (c[:, :, None] * np.column_stack([np.ones(len(x)), features(x)])[:, None, :]).reshape(len(x), -1)
            for c, x in ((context, u), (np.stack([np.ones(200), side], axis=1), new))
        )
        w = np.linalg.solve(at.T @ at + 1e-2 * np.eye(at.shape[1]), at.T @ y)
        return np.sqrt(np.mean((to @ w - truth) ** 2)) / truth.std()

    assert error(made) < 0.5
    assert error(made) < 0.8 * error(untrained)


def test_a_network_follows_from_the_generator_alone():
    torch = pytest.importorskip("torch")
    first = learned(3)[0]
    torch.manual_seed(99)
    state = torch.get_rng_state()
    again, other = learned(3)[0], learned(4)[0]
    assert torch.equal(state, torch.get_rng_state())
    assert np.array_equal(first(points()), again(points()))
    assert not np.allclose(first(points()), other(points()))
    assert np.mean(np.sum(first(learned(3)[1]) ** 2, axis=1)) == pytest.approx(1.0)


def test_missing_torch_names_the_extra(monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(neural, "importlib", type("Importer", (), {"import_module": staticmethod(absent)}))
    with pytest.raises(MipcashError, match=r"mipcash\[torch\]"):
        NeuralFeatures.learned(DIMS, points(), np.ones((9, 1)), np.zeros(9), 4, np.random.default_rng(0))
    assert importlib.import_module("mipcash.surrogates.linear.features.neural") is neural


def test_unknown_features_are_refused():
    with pytest.raises(SpaceError, match="did you mean 'fourier'"):
        known_map("fouriers")
