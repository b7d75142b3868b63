"""The linear surrogate under each preset and prior: the contract, conditioning against a fit to everything, noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mipcash.methods.mivabo import evidence
from mipcash.methods.mivabo.blocks import FeatureSizes
from mipcash.methods.mivabo.posterior import LinearPosterior
from mipcash.methods.mivabo.sparse.mixture import SparseSettings
from mipcash.methods.mivabo.surrogate import LinearSettings, LinearSurrogate
from mipcash.surrogates.protocols import Surrogate
from tests.surrogates.conformance import SPACES, Conformance, Observed, observed_in

SIZES = FeatureSizes(fourier=6, per_number=4, product_columns=80)
BRIEF = SparseSettings(burn_in=8, draws=6)
SOME = ["discrete", "bound_numbers"]


class Linear(Conformance):
    settings = LinearSettings(sizes=SIZES, iterations=5)

    def made(self, observed: Observed) -> Surrogate[Any, Any]:
        return LinearSurrogate(observed.program, observed.scale, self.settings)


@pytest.mark.parametrize("name", list(SPACES))
class TestEvidence(Linear):
    pass


@pytest.mark.parametrize("name", SOME)
class TestPaper(Linear):
    settings = LinearSettings("paper", sizes=SIZES)


@pytest.mark.parametrize("name", SOME)
class TestHorseshoe(Linear):
    gaussian = False
    settings = LinearSettings(sizes=SIZES, iterations=5, prior="horseshoe", sparse=BRIEF)


@pytest.mark.parametrize("name", SOME)
class TestVariational(Linear):
    settings = LinearSettings("paper", sizes=SIZES, prior="laplace")


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("preset", ["evidence", "paper"])
def test_conditioning_is_a_fit_to_everything_with_the_same_features(name: str, preset: str) -> None:
    observed, rng = observed_in(name), np.random.default_rng(0)
    surrogate = LinearSurrogate(observed.program, observed.scale, LinearSettings(preset, sizes=SIZES, iterations=3))
    noise = 0.1 * rng.random(len(observed.points))
    before, _ = surrogate.fit(surrogate.prepare(observed.points), observed.values, {}, rng, noise)
    assert isinstance(before, LinearPosterior)
    values = rng.normal(size=len(observed.new))
    grown = before.given(observed.new, values, 0.2)
    losses = np.concatenate([observed.values, before.shift + before.scale * values])
    whole = LinearPosterior.fit(
        before.blocks,
        observed.program,
        observed.every,
        losses,
        before.fitted_noise,
        np.concatenate([before.noise, np.full(len(values), 0.2)]),
    )
    # a fit of its own standardises with all losses: only what no shift and scale change can be compared
    np.testing.assert_allclose(grown.predict(observed.every)[1], whole.predict(observed.every)[1], atol=1e-7)
    alike = np.linalg.solve(_covariance(whole), grown.y)
    np.testing.assert_allclose(grown.alpha, alike, rtol=1e-5, atol=1e-6)


def _covariance(posterior: LinearPosterior) -> np.ndarray:
    lower = np.tril(posterior.factor[0])
    return np.asarray(lower @ lower.T)


@pytest.mark.parametrize("name", SPACES)
def test_the_gradient_of_the_evidence_under_a_vector_of_noise_agrees_with_finite_differences(name: str) -> None:
    observed, rng = observed_in(name), np.random.default_rng(1)
    grams = LinearSurrogate(observed.program, observed.scale).prepare(observed.points).grams
    y, noise = rng.normal(size=len(observed.points)), rng.random(len(observed.points))
    theta = grams.layout.prior()[0] + 0.2 * rng.normal(size=len(grams.layout.prior()[0]))
    gradient = evidence.negative_log_posterior(theta, grams, y, noise)[1]
    step = 1e-5
    differences = [
        (
            evidence.negative_log_posterior(theta + step * e, grams, y, noise)[0]
            - evidence.negative_log_posterior(theta - step * e, grams, y, noise)[0]
        )
        / (2 * step)
        for e in np.eye(len(theta))
    ]
    np.testing.assert_allclose(gradient, differences, rtol=2e-4, atol=2e-5)


def test_a_state_of_earlier_journals_is_taken() -> None:
    observed = observed_in("conv_net")
    surrogate = LinearSurrogate(observed.program, observed.scale, LinearSettings(sizes=SIZES, iterations=2))
    prepared = surrogate.prepare(observed.points)
    _, first = surrogate.fit(prepared, observed.values, {}, np.random.default_rng(0))
    assert set(first) == {"theta"}
    _, warm = surrogate.fit(prepared, observed.values, {**first, "left_out": 0.1}, np.random.default_rng(0))
    assert set(warm) == {"theta"}
    assert warm != first
