"""Answers by expectation propagation: against quadrature where there are two of them, and on a border that is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.special import expit
from scipy.stats import multivariate_normal, norm

import mipcash as mc
from mipcash.space.domain import Domain
from mipcash.surrogates.structured.classification import BinarySurrogate, LatentPosterior, Sites, moments
from mipcash.surrogates.structured.structure import Structure
from mipcash.surrogates.structured.surrogate import StructuredSettings, StructuredSurrogate


@pytest.mark.parametrize(("mean", "variance", "slope"), [(0.3, 0.5, 2.0), (-2.0, 4.0, 8.0), (1.0, 0.01, 1.0)])
def test_moments_of_a_site_by_quadrature(mean: float, variance: float, slope: float) -> None:
    found = moments(np.array([mean]), np.array([variance]), np.array([1.0]), slope)
    sd = variance**0.5

    def of(power: int, about: float = 0.0) -> float:
        def f(x: float) -> float:
            return float((x - about) ** power * expit(slope * x) * norm.pdf(x, mean, sd))

        return float(quad(f, mean - 9 * sd, mean + 9 * sd, limit=200)[0])

    first = of(1) / of(0)
    assert found[0][0] == pytest.approx(np.log(of(0)), abs=1e-4)
    assert found[1][0] == pytest.approx(first, abs=1e-4)
    assert found[2][0] == pytest.approx(of(2, first) / of(0), rel=1e-3)


def test_evidence_and_means_of_two_answers_by_quadrature() -> None:
    covariance, answers, slope = np.array([[1.5, 0.9], [0.9, 1.2]]), np.array([1.0, -1.0]), 2.0
    law = multivariate_normal(np.zeros(2), covariance)

    def of(a: int, b: int) -> float:
        def f(y: float, x: float) -> float:
            return float(x**a * y**b * expit(slope * x) * expit(-slope * y) * law.pdf([x, y]))

        return float(dblquad(f, -6.5, 6.5, -6.5, 6.5, epsabs=1e-6)[0])

    z = of(0, 0)
    sites = Sites.of(covariance, answers, slope)
    assert sites.evidence == pytest.approx(np.log(z), abs=0.01)
    mean = np.linalg.solve(np.linalg.inv(covariance) + np.diag(sites.tau), sites.nu)
    assert mean == pytest.approx([of(1, 0) / z, of(0, 1) / z], abs=0.02)


def border(config: dict[str, float]) -> float:
    return 1.0 if config["x"] + config["y"] + 0.3 * (config["kind"] == "b") > 1.0 else -1.0


def fitted(count: int) -> tuple[Domain, LatentPosterior, BinarySurrogate]:
    space = mc.Space("border")
    space.real("x", 0.0, 1.0)
    space.real("y", 0.0, 1.0)
    space.categorical("kind", ["a", "b"])
    domain = Domain.of(space)
    configs = domain.sample(count, np.random.default_rng(0))
    points = domain.encode(configs)
    structure = Structure.of(domain.program, domain.scale)
    surrogate = BinarySurrogate(StructuredSurrogate(structure, StructuredSettings(warp=False)))
    posterior, state = surrogate.fit(surrogate.prepare(points), np.array([border(c) for c in configs]), {})
    assert set(state) == {"theta", "strength", "fits"}
    return domain, posterior, surrogate


def test_it_tells_the_sides_of_a_border_and_is_sure_far_from_it() -> None:
    domain, posterior, _ = fitted(40)
    new = domain.sample(300, np.random.default_rng(1))
    mean, deviation = posterior.predict(domain.encode(new))
    answers = np.array([border(c) for c in new])
    assert np.mean(np.sign(mean) == answers) > 0.88
    sure = np.abs(mean) > 1.5 * deviation
    assert sure.mean() > 0.3
    assert np.mean(np.sign(mean)[sure] == answers[sure]) > 0.97


def test_the_posterior_is_that_of_the_sites() -> None:
    """Regression on y with noise 1 / tau is the posterior of expectation propagation."""
    _, posterior, _ = fitted(25)
    kernel, x = posterior.kernel, posterior.x
    covariance = kernel(x, x) + kernel.residual(x, x) + 1e-8 * np.eye(25)
    tau = 1.0 / (posterior.noise + kernel.noise)
    sigma = np.linalg.inv(np.linalg.inv(covariance) + np.diag(tau))
    assert posterior.fitted == pytest.approx(sigma @ (tau * posterior.y), rel=1e-3, abs=1e-3)
    assert posterior.scaled(np.array([4.0]))[0] == pytest.approx(4.0 / posterior.slope)


@pytest.mark.parametrize("answer", [-1.0, 1.0])
def test_answers_that_are_all_alike_are_no_error(answer: float) -> None:
    sites = Sites.of(np.full((5, 5), 2.0) + 1e-8 * np.eye(5), np.full(5, answer), 8.0)
    assert np.isfinite([*sites.tau, *sites.nu, sites.evidence]).all()
    assert np.all(np.sign(sites.nu) == answer)
