"""Linear surrogate: conformance under each preset and prior, the dual posterior against the primal one, evidence."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.errors import SpaceError
from mipcash.methods.mivabo import evidence
from mipcash.methods.mivabo.blocks import BlockMaker, FeatureSizes, quadrature, relevant_pairs
from mipcash.methods.mivabo.interactions import Interactions
from mipcash.methods.mivabo.mivabo import LinearSurrogate, MiVaBOSettings
from mipcash.methods.mivabo.posterior import LinearPosterior, standardisation
from mipcash.methods.mivabo.sparse.mixture import SparseSettings
from mipcash.program.points import Points
from mipcash.space.compiled import compiled
from mipcash.space.domain import Domain
from mipcash.surrogates.cosines import CosineFeatures
from tests.spaces import ALL, loss
from tests.surrogates.conformance import Observed, Sampling, observed_in

SIZES = FeatureSizes(fourier=6, per_number=4, product_columns=80)
SMALL = FeatureSizes(fourier=4, per_number=3, product_columns=60)


class Linear(Sampling):
    settings = MiVaBOSettings(sizes=SIZES, refit=5)

    def fit(
        self, observed: Observed, t: int, state: dict[str, Any], rng: np.random.Generator, noise: Any = 0.0
    ) -> tuple[Any, dict[str, Any]]:
        surrogate = LinearSurrogate(observed.program, observed.scale, self.settings)
        return surrogate.fit(observed.points[:t], observed.values[:t], state, rng, noise)

    def told(self, posterior: Any, observed: Observed) -> float:
        shift, width = standardisation(observed.values)
        return float((observed.values[0] - shift) / width)


@pytest.mark.parametrize("name", ["nested", "discrete", "bound_numbers"])
class TestEvidence(Linear):
    pass


@pytest.mark.parametrize("name", ["bound_numbers"])
class TestPaper(Linear):
    settings = MiVaBOSettings("paper", sizes=SIZES)


@pytest.mark.parametrize("name", ["bound_numbers"])
class TestHorseshoe(Linear):
    gaussian = False
    settings = MiVaBOSettings(sizes=SIZES, refit=5, prior="horseshoe", sparse=SparseSettings(burn_in=8, draws=6))


@pytest.mark.parametrize("name", ["discrete", "bound_numbers"])
class TestVariational(Linear):
    settings = MiVaBOSettings("paper", sizes=SIZES, prior="laplace")


def observations(space, n=14, seed=0):
    program, scale = compiled(space).program, Domain.of(space).scale
    configs = space.sample(n, seed)
    z = program.one_hot(np.array([program.encode(c) for c in configs]).reshape(n, -1))
    return program, scale, z, scale.units(configs), np.array([loss(c) for c in configs])


def points_of(program, z, u):
    """Return the points with these binaries."""
    levels = np.array([program.levels_of(row) for row in z], dtype=np.int64).reshape(len(z), len(program.groups))
    return Points(levels, u)


def posterior(space, preset, seed=0, n=14):
    program, scale, z, u, y = observations(space, n)
    rng = np.random.default_rng(seed)
    if preset == "paper":
        blocks, noise = BlockMaker(program, scale, "fourier", SMALL).paper(1.0, 1.0, rng), 1.0
    else:
        grams = evidence.Grams.of(program, scale, z, u)
        theta = grams.layout.prior()[0] + 0.3 * rng.normal(size=len(grams.layout.prior()[0]))
        blocks, noise = (
            BlockMaker(program, scale, "fourier", SMALL).evidence(theta, grams.layout, rng, SMALL.product_columns),
            0.01,
        )
    return LinearPosterior.fit(blocks, program, points_of(program, z, u), y, noise), z, u, y, noise


def design(post, z, u):
    """Return the matrix of all features and their prior variances, which the dual never forms."""
    parts, variances = [], []
    for block in post.blocks:
        d, c = block.left(z), block.right(u)
        parts.append((d[:, :, None] * c[:, None, :]).reshape(len(z), -1))
        variances.append(np.repeat(block.variances, c.shape[1]))
    return np.concatenate(parts, axis=1), np.concatenate(variances)


@pytest.mark.parametrize(("name", "preset"), [("discrete", "evidence"), ("bound_numbers", "paper")])
def test_the_dual_moments_are_the_primal_ones_also_after_conditioning(name, preset):
    """Mean and covariance of the weights in weight space (daxberger2019 App. C, general prior variances)."""
    space = ALL[name]()
    before, z, u, _, noise = posterior(space, preset)
    program, _, further_z, further_u, _ = observations(space, 4, seed=1)
    z, u = np.concatenate([z, further_z]), np.concatenate([u, further_u])
    points = points_of(program, z, u)
    values = np.random.default_rng(0).normal(size=4)
    after = before.given(points[14:], values, 0.2)
    for post, y, v in (
        (before, before.y, np.full(14, noise)),
        (after, np.append(before.y, values), noise + np.append(np.zeros(14), np.full(4, 0.2))),
    ):
        phi, variances = design(post, z, u)
        phi, keep = phi[:, variances > 0], variances > 0
        seen = phi[: len(y)]
        covariance = np.linalg.inv(np.diag(1 / variances[keep]) + (seen.T / v) @ seen)
        weights = covariance @ seen.T @ (y / v)
        flat = np.concatenate([w.ravel() for w in post.mean().weights])
        np.testing.assert_allclose(flat[keep], weights, atol=1e-6)
        mean, deviation = post.predict(points)
        np.testing.assert_allclose(mean, phi @ weights, atol=1e-6)
        np.testing.assert_allclose(deviation**2, np.sum(phi @ covariance * phi, axis=1), atol=1e-6)


def declared_at_random(program, scale, seed=3):
    """Return interactions of about half of all pairs."""
    rng, g, d = np.random.default_rng(seed), range(len(program.groups)), range(len(scale))
    drawn = [
        frozenset(p for p in of if rng.random() < 0.5) for of in (combinations(g, 2), product(g, d), combinations(d, 2))
    ]
    return Interactions(*drawn)


@pytest.mark.parametrize(("name", "some"), [("discrete", False), ("conv_net", True), ("bound_numbers", False)])
def test_evidence_gradients(name, some):
    """Compare gradients with finite differences, under a vector of noise, with all or some pairs."""
    program, scale, z, u, y = observations(ALL[name]())
    grams = evidence.Grams.of(program, scale, z, u, declared_at_random(program, scale) if some else None)
    mean, sd = grams.layout.prior()
    rng = np.random.default_rng(0)
    y, noise = (y - y.mean()) / y.std(), rng.random(len(y))
    theta, step = mean + 0.5 * sd * rng.normal(size=len(mean)), 1e-5
    _, gradient = evidence.negative_log_posterior(theta, grams, y, noise)
    differences = [
        (
            evidence.negative_log_posterior(theta + e, grams, y, noise)[0]
            - evidence.negative_log_posterior(theta - e, grams, y, noise)[0]
        )
        / (2 * step)
        for e in step * np.eye(len(theta))
    ]
    np.testing.assert_allclose(gradient, differences, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(("name", "some"), [("conv_net", True), ("bound_numbers", False)])
def test_the_features_have_the_kernel_that_was_fitted(name, some):
    """With enough Fourier features the kernels agree, for declared pairs or all pairs. The discrete part is exact."""
    space = ALL[name]()
    program, scale, z, u, _ = observations(space, n=10)
    declared = declared_at_random(program, scale) if some else None
    grams = evidence.Grams.of(program, scale, z, u, declared)
    theta = grams.layout.prior()[0]
    theta[grams.layout.slices["a"]] += np.random.default_rng(4).normal(size=len(program.groups))
    sizes = FeatureSizes(fourier=6000, per_number=6000, product_columns=10**6)
    maker, rng = BlockMaker(program, scale, "fourier", sizes, declared), np.random.default_rng(0)
    blocks = maker.evidence(theta, grams.layout, rng, sizes.product_columns)
    total = sum(((b.left(z) * b.variances) @ b.left(z).T) * (b.right(u) @ b.right(u).T) for b in blocks)
    k, _ = evidence.covariance(theta, grams)
    noise = np.exp(theta[grams.layout.slices["noise"]][0]) + evidence.JITTER
    np.testing.assert_allclose(total, k - noise * np.eye(len(k)), atol=0.06)


def test_the_fit_recovers_which_group_matters():
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
    assert standardisation(np.full(5, 1e9)) == (1e9, 1.0), "equal losses do not divide by zero"


def test_a_state_of_earlier_journals_is_accepted() -> None:
    observed = observed_in("conv_net")
    surrogate = LinearSurrogate(observed.program, observed.scale, MiVaBOSettings(sizes=SIZES, refit=2))
    _, first = surrogate.fit(observed.points, observed.values, {}, np.random.default_rng(0))
    assert set(first) == {"theta"}
    _, warm = surrogate.fit(observed.points, observed.values, {**first, "left_out": 0.1}, np.random.default_rng(0))
    assert set(warm) == {"theta"}
    assert warm != first


# -- features of the numbers ----------------------------------------------------------------------------------------

DIMS, LENGTH = np.array([0, 2]), np.array([0.5, 0.8])
U = np.random.default_rng(0).random((9, 3))


def test_quadrature_is_the_kernel_to_machine_precision_and_its_error_falls_exponentially():
    def error(made, length):
        kernel = np.exp(-0.5 * (((U[:, None, DIMS] - U[None, :, DIMS]) / length) ** 2).sum(axis=2))
        return np.max(np.abs(made(U) @ made(U).T - kernel))

    wide = np.array([1.0, 1.5])
    for nodes in (16, 17):
        assert quadrature(DIMS, LENGTH, nodes).size == nodes**2
        assert error(quadrature(DIMS, LENGTH, nodes), LENGTH) < 1e-9
        assert error(quadrature(DIMS, wide, nodes), wide) < 1e-14
    errors = [error(quadrature(DIMS, LENGTH, nodes), LENGTH) for nodes in (4, 8, 12)]
    assert errors[2] < 0.1 * errors[1] < 0.01 * errors[0]
    assert errors[1] < 0.05 * error(CosineFeatures.fourier(DIMS, LENGTH, 64, np.random.default_rng(0)), LENGTH)


@pytest.mark.parametrize(
    "made",
    [CosineFeatures.fourier(DIMS, LENGTH, 20, np.random.default_rng(1)), quadrature(DIMS, LENGTH, 7)],
    ids=["fourier", "quadrature"],
)
def test_gradients_and_bounds(made):
    assert made(U).shape == (len(U), made.size)
    assert np.all(np.abs(made(U)) <= made.amplitude + 1e-12)


def test_too_large_grids_are_refused():
    with pytest.raises(SpaceError, match=r"8\^6 = 262144 features.*interactions"):
        quadrature(np.arange(6), np.ones(6), 8)
