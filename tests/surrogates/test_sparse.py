"""Sparse priors: conditionals against closed forms, weights against a dense Gaussian, recovery of a sparse truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import mipcash as mc
from mipcash.deadline import Deadline
from mipcash.errors import SpaceError
from mipcash.methods.mivabo.discrete_features import DiscreteFeatures
from mipcash.methods.mivabo.functions import Block
from mipcash.methods.mivabo.posterior import LinearPosterior
from mipcash.methods.mivabo.sparse.mixture import Mixture, Scales, SparseSettings
from mipcash.methods.mivabo.sparse.posterior import UPDATES, SparsePosterior, half_ranges, restricted, thinned
from mipcash.program.points import Points
from mipcash.space.compiled import compiled
from mipcash.space.domain import Domain
from tests.spaces import ALL
from tests.surrogates.test_surrogates import posterior

BITS = 12
ACTIVE = {(0, 5): 1.6, (2, 3): -1.2, (7, 11): 0.9}


def bits_model(t, seed=0):
    """Return a posterior on t observations and 200 test points.

    The observed function is linear in 12 signs and in three of their 66 products.
    """
    space = mc.Space("bits")
    for i in range(BITS):
        space.integer(f"b{i}", 0, 1)
    program, rng = compiled(space).program, np.random.default_rng(seed)
    x = rng.integers(0, 2, size=(t + 200, BITS))
    sign = 2 * x - 1
    y = 0.3 * sign @ rng.normal(size=BITS) + sum(w * sign[:, g] * sign[:, h] for (g, h), w in ACTIVE.items())
    z = program.one_hot(x)
    pairs = [(g, h) for g in range(BITS) for h in range(g + 1, BITS)]
    features = DiscreteFeatures.one_hot(program, pairs)
    variances = np.full(features.size, 2.0 * 0.1**2)
    variances[0], variances[1 : 1 + features.n_linear] = 1.0, 0.1
    block = Block(features, None, variances)
    base = LinearPosterior.fit([block], program, Points(x[:t], np.zeros((t, 0))), y[:t], 1e-3)
    return base, z[t:], y[t:]


def mean_of(sparse):
    """Return the posterior mean: a sample without deviation from it."""
    return sparse.sample(np.random.default_rng(0), 0.0)


def error(f, z, y):
    values = sum((block.left(z) @ w)[:, 0] for block, w in zip(f.blocks, f.weights, strict=True))
    return np.sqrt(np.mean((f.loss(values) - y) ** 2)) / np.std(y)


# -- conditionals ---------------------------------------------------------------------------------------------------


def quantiles_agree(draws, cdf):
    """Assert a Kolmogorov-Smirnov test. It fails for one of ten thousand seeds, and the seed is fixed."""
    assert stats.kstest(draws, cdf).pvalue > 1e-4


@pytest.mark.parametrize("prior", ["laplace", "horseshoe"])
def test_weights_from_the_prior_and_the_local_update_keep_the_prior(prior):
    """Geweke's test of the local step: scales, then W given the scales, then scales given W keep the prior."""
    n, size, rng = 10_000, 3, np.random.default_rng(1)
    if prior == "horseshoe":
        mixing = 1 / rng.gamma(0.5, 1.0, n)
        local = (1 / mixing) / rng.gamma(0.5, 1.0, n)
        cdf = stats.halfcauchy.cdf
    else:
        mixing, local = np.ones(n), rng.gamma((size + 1) / 2, 2.0, n)
        cdf = stats.gamma((size + 1) / 2, scale=2.0).cdf
    s = 0.3 * local * rng.chisquare(size, n)
    after, _ = UPDATES[prior](Scales(local, mixing, 0.3, 1.0), s, np.full(n, float(size)), rng)
    quantiles_agree(np.sqrt(after) if prior == "horseshoe" else after, cdf)


@pytest.mark.parametrize("t", [10, 300])
def test_weights_given_the_scales_are_the_dense_gaussian(t):
    """Mean and covariance agree for M > t features, and for M < t features, for which the data are reduced."""
    base, *_ = bits_model(t)
    mixture = Mixture.of(base, SparseSettings())
    assert (len(mixture.base.y) < t) == (t == 300)
    rng = np.random.default_rng(3)
    u = len(mixture.units.keys)
    at = Scales(rng.gamma(1.0, 1.0, u), np.ones(u), 0.3, 0.05)
    given = mixture.given(at)
    phi = base.left[0]
    v = base.blocks[0].variances * mixture.units.over_rows(at.glob * at.local, 1.0)[0]
    covariance = np.linalg.inv(np.diag(1 / v) + phi.T @ phi / at.noise)
    mean = covariance @ phi.T @ base.y / at.noise
    np.testing.assert_allclose(given.mean().weights[0][:, 0], mean, atol=1e-6)
    k, n = mixture.covariance(at.glob * at.local, 1.0), 800
    np.testing.assert_allclose(mixture.weights(at, k, rng)[1][0][:, 0], mean, atol=1e-6)
    draws = np.array([mixture.weights(at, k, rng)[0][0][:, 0] for _ in range(n)])
    sd = np.sqrt(np.diag(covariance))
    assert np.max(np.abs(draws.mean(axis=0) - mean) / sd) < 5 / np.sqrt(n)
    assert np.max(np.abs((np.cov(draws.T) - covariance) / np.outer(sd, sd))) < 6 * np.sqrt(2 / n)


def test_the_evidence_of_the_reduced_data_is_that_of_all_data():
    base, *_ = bits_model(150)
    settings = SparseSettings()
    mixture = Mixture.of(base, settings)
    one = np.ones(len(mixture.units.keys))

    def direct(glob, noise):
        v = base.blocks[0].variances * mixture.units.over_rows(glob * one, 1.0)[0]
        k = (base.left[0] * v) @ base.left[0].T + noise * np.eye(150)
        return stats.multivariate_normal(np.zeros(150), k).logpdf(base.y)

    def ours(glob, noise):
        return mixture.log_evidence(mixture.covariance(glob * one, 1.0), noise)

    assert ours(0.5, 0.1) - ours(2.0, 0.02) == pytest.approx(direct(0.5, 0.1) - direct(2.0, 0.02), rel=1e-4)


# -- the posterior --------------------------------------------------------------------------------------------------


def test_a_sparse_truth_is_recovered():
    base, z, y = bits_model(40)
    dense = error(base.mean(), z, y)
    for prior in ("horseshoe", "laplace"):
        sparse = SparsePosterior.fit(base, SparseSettings(prior, burn_in=100, draws=60), np.random.default_rng(0))
        assert error(mean_of(sparse), z, y) < (0.1 if prior == "horseshoe" else 0.8) * dense
        sizes = half_ranges(mean_of(sparse))
        assert set(sorted(sizes, key=sizes.get, reverse=True)[:3]) == set(ACTIVE), prior


def test_the_variational_bound_agrees_with_a_long_chain():
    """With many observations and known noise, the posterior has one mode, and means agree within one deviation."""
    base, z, y = bits_model(120)
    base = replace(base, noise=0.05)
    settings = SparseSettings("laplace", burn_in=100, draws=250, noise_sd=0.0)
    chain = SparsePosterior.fit(base, settings, np.random.default_rng(0))
    bound = SparsePosterior.fit(base, replace(settings, inference="variational"), np.random.default_rng(0))
    rng = np.random.default_rng(1)
    sd = np.array([chain.sample(rng).weights[0][:, 0] for _ in range(400)]).std(axis=0)
    gap = np.abs(mean_of(bound).weights[0][:, 0] - mean_of(chain).weights[0][:, 0]) / sd
    assert np.mean(gap) < 0.3
    assert np.max(gap) < 1.0
    assert bound.draws[0].glob == pytest.approx(np.mean([d.glob for d in chain.draws]), rel=0.5)
    assert error(mean_of(bound), z, y) == pytest.approx(error(mean_of(chain), z, y), abs=0.03)


def test_a_chain_ends_at_its_deadline_with_a_draw():
    base = bits_model(20)[0]
    for settings in (SparseSettings("horseshoe"), SparseSettings("laplace", inference="variational")):
        brief = SparsePosterior.fit(base, settings, np.random.default_rng(0), Deadline(0.0))
        assert len(brief.draws) == 1


# -- leaving pairs out ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "preset"), [("discrete", "paper"), ("bound_numbers", "evidence")])
def test_omitted_pairs_are_bounded_and_kept_pairs_make_a_quadratic_form(name, preset):
    space = ALL[name]()
    base, *_ = posterior(space, preset)
    f = base.sample(np.random.default_rng(0))
    program, scale = compiled(space).program, Domain.of(space).scale
    sizes, rng = half_ranges(f), np.random.default_rng(4)
    keep = sorted(sizes)[:2]
    for kept, bound in (restricted(f, keep), thinned(f, 0.6 * sum(sizes.values())), restricted(f, ())):
        assert bound <= sum(sizes.values()) + 1e-12
        for config in space.sample(6, 9):
            u, z = rng.random(len(scale)), program.one_hot(program.encode(config))
            value = kept.value(z, u)
            assert abs(value - f.value(z, u)) <= bound + 1e-9
            assert program.folded(kept.form_at(u)).value(np.pad(z, (0, program.n - len(z)))) == pytest.approx(value)
    coupled = {p for p, size in half_ranges(restricted(f, keep)[0]).items() if size > 0}
    assert coupled <= set(keep)
    assert thinned(f, 0.0)[1] == 0.0


@pytest.mark.parametrize(
    "wrong",
    [
        *({"prior": "lasso"}, {"inference": "ep"}, {"inference": "variational"}, {"by": "level"}, {"draws": 0}),
        *({"burn_in": 1.5}, {"noise": 0.0}, {"noise_sd": -1.0}),
    ],
)
def test_invalid_settings_are_refused(wrong):
    with pytest.raises(SpaceError):
        SparseSettings(**wrong)
