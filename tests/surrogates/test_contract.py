"""Open contract of surrogates: a Laplace classifier that only this file defines is used like any other surrogate.

Notation
    y (t,) in {-1, 1}, p(y | f) = Phi(y f).   The Laplace approximation replaces it by N(f; m_i, v_i) at the mode.

The structured posterior takes the sites m and v as values and noise of its observations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import norm

from mipcash.acquisition.analytic import AnalyticAcquisition, LogEI
from mipcash.program.points import Points
from mipcash.surrogates.protocols import Noise, State
from mipcash.surrogates.structured.evidence import Evidence, fit
from mipcash.surrogates.structured.kernel import Kernel
from mipcash.surrogates.structured.posterior import StructuredPosterior
from mipcash.surrogates.structured.structure import Structure
from mipcash.surrogates.structured.training_tables import Tables
from mipcash.surrogates.structured.warping import Warp
from tests.surrogates.conformance import Conformance, Observed, observed_in
from tests.surrogates.test_structured_surrogate import structured_part

IDENTITY = Warp(0.0, 1.0, 0.0, 0.0, 1.0)


def signs_of(values: np.ndarray) -> np.ndarray:
    """Return 1 for values above the median, otherwise -1."""
    return np.where(values > np.median(values), 1.0, -1.0)


@dataclass(frozen=True)
class LaplaceSurrogate:
    """Surrogate that learns a latent f from its signs."""

    structure: Structure
    rounds: int = 2
    iterations: int = 4

    def prepare(self, points: Points) -> Tables:
        return Tables.of(self.structure, points)

    def fit(
        self, prepared: Tables, values: np.ndarray, state: State, rng: np.random.Generator, noise: Noise = 0.0
    ) -> tuple[StructuredPosterior, dict[str, Any]]:
        theta = np.array(state["theta"]) if state else self.structure.prior[0]
        signs = signs_of(values)
        for _ in range(self.rounds):
            targets, spread = self._sites(prepared, signs, theta)
            theta, _ = fit(Evidence(prepared, targets, spread + noise), [theta], self.iterations)
        targets, spread = self._sites(prepared, signs, theta)
        posterior = StructuredPosterior.fit(
            Kernel(self.structure, theta), prepared.x, targets, IDENTITY, spread + noise
        )
        return posterior, {"theta": theta.tolist()}

    def _sites(self, prepared: Tables, signs: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return m and v at the mode, found by Newton's method."""
        f = np.zeros(len(signs))
        for _ in range(20):
            h = signs * np.exp(norm.logpdf(f) - log_ndtr(signs * f))
            spread = 1.0 / (h * (h + f))
            targets = f + spread * h
            kernel = Kernel(self.structure, theta)
            f = StructuredPosterior.fit(kernel, prepared.x, targets, IDENTITY, spread).fitted
        return targets, spread


@pytest.mark.parametrize("name", ["conv_net"])
class TestLaplaceSurrogate(Conformance):
    inflated = False

    def made(self, observed: Observed) -> LaplaceSurrogate:
        return LaplaceSurrogate(Structure(observed.program, observed.scale))

    def told(self, posterior: StructuredPosterior, observed: Observed) -> float:
        return float(np.max(np.abs(posterior.y)) * np.sign(posterior.y[0]))

    def sampled(self, posterior: StructuredPosterior, points: Points) -> tuple[np.ndarray, np.ndarray]:
        return structured_part(posterior, points)


def test_acquisitions_accept_the_classifier_and_it_reproduces_the_signs() -> None:
    observed = observed_in("conv_net")
    surrogate = LaplaceSurrogate(Structure(observed.program, observed.scale))
    posterior, _ = surrogate.fit(surrogate.prepare(observed.points), observed.values, {}, np.random.default_rng(0))
    assert np.mean(np.sign(posterior.fitted) == signs_of(observed.values)) > 0.8
    acquisition = AnalyticAcquisition(posterior, LogEI(float(posterior.fitted.min())))
    values = acquisition.values(observed.new)
    for z, u, value in zip(observed.binaries(observed.new), observed.new.units, values, strict=True):
        assert acquisition.section(z)(u)[0] == pytest.approx(value, abs=1e-6)
