"""Feature maps: forms against direct evaluation, kernels against Monte Carlo, gradients against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from mipcash.methods.mivabo.features.discrete import DiscreteFeatures, bit_block
from mipcash.program.unit_scale import INACTIVE
from mipcash.space.compiled import compiled
from mipcash.space.domain import Domain
from mipcash.surrogates.fourier import FourierFeatures
from mipcash.surrogates.level_kernels import level_kernel
from tests.spaces import ALL


def legal_binaries(space, n=40, seed=0):
    program = compiled(space).program
    levels = np.array([program.encode(c) for c in space.sample(n, seed)]).reshape(n, -1)
    return program, levels, program.one_hot(levels)


@pytest.mark.parametrize("encoding", ["one_hot", "bits"])
@pytest.mark.parametrize("name", ["conv_net", "discrete", "bound_numbers"])
def test_a_weighting_of_the_features_is_a_quadratic_form(name, encoding):
    program, _, z = legal_binaries(ALL[name]())
    n_groups = len(program.groups)
    pairs = [(g, h) for g in range(n_groups) for h in range(g + 1, n_groups)][::2]
    features = getattr(DiscreteFeatures, encoding)(program, pairs)
    weights = np.random.default_rng(1).normal(size=features.size)
    form = program.folded(features.form(weights))
    padded = np.concatenate([z, np.zeros((len(z), program.n - program.n_z))], axis=1)
    np.testing.assert_allclose([form.value(v) for v in padded], features(z) @ weights, rtol=1e-10, atol=1e-10)


def test_what_is_off_contributes_nothing():
    program, levels, z = legal_binaries(ALL["discrete"]())
    features = DiscreteFeatures.one_hot(program, [])
    g = next(k for k, group in enumerate(program.groups) if group.conditional)
    off = levels[:, g] == program.groups[g].size - 1
    assert off.any()
    assert not off.all()
    effect = features(z)[:, 1:][:, features.spans[g]]
    assert not effect[off].any()
    assert np.all(np.abs(effect[~off]).sum(axis=1) > 0)


def test_level_covariances_are_factored_exactly():
    program, _, _ = legal_binaries(ALL["conv_net"]())
    features = DiscreteFeatures.one_hot(program, [])
    for g, group in enumerate(program.groups):
        n_levels = group.n_levels
        k = level_kernel(group)[0][:n_levels, :n_levels]
        block = features.encoding[group.start : group.start + len(k), features.spans[g]]
        np.testing.assert_allclose(block @ block.T, k, atol=1e-10)
        if not group.conditional and len(k) > 1:
            np.testing.assert_allclose(k.sum(axis=0), 0.0, atol=1e-10)
            assert np.mean(np.diag(k)) == pytest.approx(1.0)


def test_bits_tell_all_levels_apart():
    program, _, _ = legal_binaries(ALL["conv_net"]())
    for group in program.groups:
        rows = bit_block(group)[: group.n_levels]
        assert len({tuple(r) for r in rows}) == len(rows)


def test_fourier_features_approximate_the_squared_exponential_kernel():
    rng = np.random.default_rng(0)
    length = np.array([0.3, 0.7])
    u = rng.random((6, 3))
    dims = np.array([0, 2])
    kernel = np.exp(-0.5 * (((u[:, None, dims] - u[None, :, dims]) / length) ** 2).sum(axis=2))
    draws = 400
    total = np.zeros((6, 6))
    for _ in range(draws):
        phi = FourierFeatures.draw(dims, length, 50, rng)(u)
        total += phi @ phi.T
    # each entry of phi phi' has standard deviation below 1/sqrt(50); the mean of 400 of them is ten times finer than this
    assert np.max(np.abs(total / draws - kernel)) < 5 / np.sqrt(50 * draws)


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
