"""The linear model: the dual posterior against the primal one, samples against their moments, evidence gradients."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from mipcash.methods.mivabo import evidence
from mipcash.methods.mivabo.blocks import FeatureSizes, evidence_blocks, paper_blocks, relevant_pairs
from mipcash.methods.mivabo.posterior import LinearPosterior, standardisation
from mipcash.program.points import Points
from mipcash.space.compiled import compiled
from mipcash.space.domain import Domain
from mipcash.surrogates.interactions import Interactions
from tests.spaces import ALL, loss

SMALL = FeatureSizes(fourier=4, per_number=3, product_columns=60)


def observations(space, n=14, seed=0):
    program, scale = compiled(space).program, Domain.of(space).scale
    configs = space.sample(n, seed)
    z = program.one_hot(np.array([program.encode(c) for c in configs]).reshape(n, -1))
    return program, scale, z, scale.units(configs), np.array([loss(c) for c in configs])


def points_of(program, z, u):
    """Points from their binaries."""
    levels = np.array([program.levels_of(row) for row in z], dtype=np.int64).reshape(len(z), len(program.groups))
    return Points(levels, u)


def posterior(space, preset, seed=0, n=14):
    program, scale, z, u, y = observations(space, n)
    rng = np.random.default_rng(seed)
    if preset == "paper":
        blocks, noise = paper_blocks(program, scale, SMALL, 1.0, 1.0, rng), 1.0
    else:
        grams = evidence.Grams.of(program, scale, z, u)
        theta = grams.layout.prior()[0] + 0.3 * rng.normal(size=len(grams.layout.prior()[0]))
        blocks, noise = evidence_blocks(program, scale, SMALL, theta, grams.layout, rng), 0.01
    return LinearPosterior.fit(blocks, program, points_of(program, z, u), y, noise), z, u, y, noise


def design(post, z, u):
    """All features at once, and their prior variances: what the dual never forms."""
    parts, variances = [], []
    for block in post.blocks:
        d, c = block.left(z), block.right(u)
        parts.append((d[:, :, None] * c[:, None, :]).reshape(len(z), -1))
        variances.append(np.repeat(block.variances, c.shape[1]))
    return np.concatenate(parts, axis=1), np.concatenate(variances)


def primal(post, z, u, y, noise):
    """Mean and covariance of the weights in weight space (daxberger2019 App. C, general prior variances)."""
    phi, v = design(post, z, u)
    shift, scale = standardisation(y)
    keep = v > 0
    precision = np.diag(1 / v[keep]) + phi[:, keep].T @ phi[:, keep] / noise
    covariance = np.linalg.inv(precision)
    return keep, covariance @ phi[:, keep].T @ ((y - shift) / scale) / noise, covariance


@pytest.mark.parametrize("preset", ["paper", "evidence"])
@pytest.mark.parametrize("name", ["discrete", "bound_numbers"])
def test_the_dual_mean_is_the_primal_mean(name, preset):
    post, z, u, y, noise = posterior(ALL[name](), preset)
    keep, mean, _ = primal(post, z, u, y, noise)
    flat = np.concatenate([w.ravel() for w in post.mean().weights])
    np.testing.assert_allclose(flat[keep], mean, atol=1e-6)


def test_samples_have_the_primal_mean_and_covariance():
    post, z, u, y, noise = posterior(ALL["discrete"](), "evidence", n=8)
    keep, mean, covariance = primal(post, z, u, y, noise)
    rng = np.random.default_rng(5)
    n = 4000
    draws = np.array([np.concatenate([w.ravel() for w in post.sample(rng).weights])[keep] for _ in range(n)])
    sd = np.sqrt(np.diag(covariance))
    assert np.max(np.abs(draws.mean(axis=0) - mean) / sd) < 5 / np.sqrt(n)
    error = (np.cov(draws.T) - covariance) / np.outer(sd, sd)
    assert np.max(np.abs(error)) < 6 * np.sqrt(2 / n)


def declared_at_random(program, scale, seed=3):
    """Half of all pairs."""
    rng, g, d = np.random.default_rng(seed), range(len(program.groups)), range(len(scale))
    drawn = [
        frozenset(p for p in of if rng.random() < 0.5) for of in (combinations(g, 2), product(g, d), combinations(d, 2))
    ]
    return Interactions(*drawn)


@pytest.mark.parametrize("some", [False, True])
@pytest.mark.parametrize("name", list(ALL))
def test_evidence_gradients(name, some):
    program, scale, z, u, y = observations(ALL[name]())
    grams = evidence.Grams.of(program, scale, z, u, declared_at_random(program, scale) if some else None)
    mean, sd = grams.layout.prior()
    rng = np.random.default_rng(0)
    y = (y - y.mean()) / y.std()
    for _ in range(3):
        theta = mean + 0.5 * sd * rng.normal(size=len(mean))
        _, gradient = evidence.negative_log_posterior(theta, grams, y)
        for i in range(len(theta)):
            step = np.zeros(len(theta))
            step[i] = 1e-5
            above = evidence.negative_log_posterior(theta + step, grams, y)[0]
            below = evidence.negative_log_posterior(theta - step, grams, y)[0]
            assert gradient[i] == pytest.approx((above - below) / 2e-5, rel=2e-4, abs=2e-5), i


@pytest.mark.parametrize("some", [False, True])
@pytest.mark.parametrize("name", ["conv_net", "bound_numbers"])
def test_the_features_have_the_kernel_that_was_fitted(name, some):
    """Discrete part: exact. With enough Fourier features the whole kernel agrees too; declared pairs or all of them."""
    space = ALL[name]()
    program, scale, z, u, _ = observations(space, n=10)
    declared = declared_at_random(program, scale) if some else None
    grams = evidence.Grams.of(program, scale, z, u, declared)
    theta = grams.layout.prior()[0]
    theta[grams.layout.slices["a"]] += np.random.default_rng(4).normal(size=len(program.groups))
    sizes = FeatureSizes(fourier=6000, per_number=6000, product_columns=10**6)
    blocks = evidence_blocks(program, scale, sizes, theta, grams.layout, np.random.default_rng(0), declared=declared)
    total = sum(((b.left(z) * b.variances) @ b.left(z).T) * (b.right(u) @ b.right(u).T) for b in blocks)
    k, _ = evidence.covariance(theta, grams)
    noise = np.exp(theta[grams.layout.slices["noise"]][0]) + evidence.JITTER
    np.testing.assert_allclose(total, k - noise * np.eye(len(k)), atol=0.06)
    no_numbers = np.full_like(u, 0.5)
    grams = evidence.Grams.of(program, scale, z, no_numbers, declared)
    discrete = blocks[0]
    expected, _ = evidence.covariance(_only_discrete(theta, grams), grams)
    got = (discrete.left(z) * discrete.variances) @ discrete.left(z).T
    np.testing.assert_allclose(got, expected - noise * np.eye(len(z)), atol=1e-6)


def _only_discrete(theta, grams):
    theta = theta.copy()
    for part in ("b", "sc", "sm"):
        theta[grams.layout.slices[part]] = -60.0
    return theta


def test_the_fit_recovers_which_group_matters():
    import mipcash as mc

    space = mc.Space("relevance")
    for i in range(6):
        space.categorical(f"c{i}", ["a", "b", "c"])
    program, scale = compiled(space).program, Domain.of(space).scale
    configs = space.sample(40, 1)
    z = program.one_hot(np.array([program.encode(c) for c in configs]))
    y = np.array([{"a": -2.0, "b": 0.0, "c": 1.5}[c["c2"]] for c in configs])
    grams = evidence.Grams.of(program, scale, z, np.zeros((40, 0)))
    theta, _ = evidence.fit(grams, (y - y.mean()) / y.std(), [])
    relevance = theta[grams.layout.slices["a"]]
    assert np.argmax(relevance) == 2
    assert relevance[2] > np.max(np.delete(relevance, 2)) + 1.0
    assert (0, 2) in relevant_pairs(program, np.exp(relevance), 40)


def test_equal_losses_do_not_divide_by_zero():
    assert standardisation(np.full(5, 1e9)) == (1e9, 1.0)
