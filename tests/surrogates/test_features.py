"""Features of the linear model: levels, numbers, quadrature against the exact kernel, gradients by finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from mipcash.errors import SpaceError
from mipcash.methods.mivabo.blocks import QuadratureFeatures
from mipcash.methods.mivabo.features.discrete import DiscreteFeatures
from mipcash.methods.mivabo.features.maps import known_map
from mipcash.program.unit_scale import INACTIVE
from mipcash.space.compiled import compiled
from mipcash.space.domain import Domain
from mipcash.surrogates.fourier import FourierFeatures
from mipcash.surrogates.level_kernels import level_kernel
from tests.spaces import ALL

DIMS, LENGTH = np.array([0, 2]), np.array([0.5, 0.8])
U = np.random.default_rng(0).random((9, 3))


def test_levels_have_their_kernel_and_what_is_off_contributes_nothing():
    space = ALL["conv_net"]()
    program, configs = compiled(space).program, space.sample(40, 0)
    levels = np.array([program.encode(c) for c in configs])
    features = DiscreteFeatures.one_hot(program, [])
    effects = features(program.one_hot(levels))[:, 1:]
    for g, group in enumerate(program.groups):
        k = level_kernel(group)[0][: group.n_levels, : group.n_levels]
        block = features.encoding[group.start : group.start + len(k), features.spans[g]]
        np.testing.assert_allclose(block @ block.T, k, atol=1e-10)
        if group.conditional:
            off = levels[:, g] == group.size - 1
            assert 0 < off.sum() < len(off)
            effect = np.abs(effects[:, features.spans[g]]).sum(axis=1)
            assert np.array_equal(effect == 0.0, off)
        elif len(k) > 1:
            np.testing.assert_allclose(k.sum(axis=0), 0.0, atol=1e-10)
            assert np.mean(np.diag(k)) == pytest.approx(1.0)


def test_numbers_on_the_unit_scale():
    space = ALL["conv_net"]()
    scale = Domain.of(space).scale
    configs = space.sample(30, 3)
    u = scale.units(configs)
    levels = np.array([compiled(space).program.encode(c) for c in configs])
    on = scale.active(compiled(space).program.one_hot(levels))
    for b, config in enumerate(configs):
        for d, label in enumerate(scale.labels):
            assert bool(on[b, d]) == (label in config)
            if label in config:
                assert scale.natural(u[b])[label] == pytest.approx(config[label], rel=1e-9)
            else:
                assert u[b, d] == INACTIVE
    for d, label in enumerate(scale.labels):
        step = 1e-6
        domain = scale.domains[d]
        if domain.kind == "real":
            slope = (domain.from_unit(0.4 + step) - domain.from_unit(0.4 - step)) / (2 * step)
            assert scale.slope(d, domain.from_unit(0.4)) == pytest.approx(slope, rel=1e-5), label


def test_quadrature_is_the_kernel_to_machine_precision_and_its_error_falls_exponentially():
    def error(made, length):
        kernel = np.exp(-0.5 * (((U[:, None, DIMS] - U[None, :, DIMS]) / length) ** 2).sum(axis=2))
        return np.max(np.abs(made(U) @ made(U).T - kernel))

    wide = np.array([1.0, 1.5])
    for nodes in (16, 17):
        assert QuadratureFeatures.tensor(DIMS, LENGTH, nodes).size == nodes**2
        assert error(QuadratureFeatures.tensor(DIMS, LENGTH, nodes), LENGTH) < 1e-9
        assert error(QuadratureFeatures.tensor(DIMS, wide, nodes), wide) < 1e-14
    errors = [error(QuadratureFeatures.tensor(DIMS, LENGTH, nodes), LENGTH) for nodes in (4, 8, 12)]
    assert errors[2] < 0.1 * errors[1] < 0.01 * errors[0]
    assert errors[1] < 0.05 * error(FourierFeatures.draw(DIMS, LENGTH, 64, np.random.default_rng(0)), LENGTH)


@pytest.mark.parametrize(
    "made",
    [FourierFeatures.draw(DIMS, LENGTH, 20, np.random.default_rng(1)), QuadratureFeatures.tensor(DIMS, LENGTH, 7)],
    ids=["fourier", "quadrature"],
)
def test_gradients_and_bounds(made):
    assert made(U).shape == (len(U), made.size)
    assert np.all(np.abs(made(U)) <= made.ceiling + 1e-12)
    for point in U[:3]:
        slopes, steps = made.gradient(point), 1e-6 * np.eye(3)
        assert slopes.shape == (made.size, 3)
        np.testing.assert_allclose(slopes, (made(point + steps) - made(point - steps)).T / 2e-6, atol=1e-7)


def test_refusals():
    with pytest.raises(SpaceError, match=r"8\^6 = 262144 features.*interactions"):
        QuadratureFeatures.tensor(np.arange(6), np.ones(6), 8)
    with pytest.raises(SpaceError, match="did you mean 'fourier'"):
        known_map("fouriers")
