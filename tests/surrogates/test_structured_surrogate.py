"""Structured surrogate: conformance, conditioning against a refit, evidence, search of hyperparameters, warp."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm

from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.space.compiled import compiled
from mipcash.space.domain import Domain
from mipcash.surrogates.protocols import Surrogate
from mipcash.surrogates.structured import surrogate as module
from mipcash.surrogates.structured.encoded import Encoded
from mipcash.surrogates.structured.evidence import FITTED, JITTER, Evidence, fit
from mipcash.surrogates.structured.kernel import Kernel
from mipcash.surrogates.structured.posterior import StructuredPosterior, factor
from mipcash.surrogates.structured.structure import Structure
from mipcash.surrogates.structured.surrogate import StructuredSurrogate
from mipcash.surrogates.structured.training_tables import Tables
from mipcash.surrogates.structured.warping import SHAPES, Warp
from tests.surrogates.conformance import Conformance, Observed, nested, observed_in


def structure_of(observed: Observed) -> Structure:
    return Structure(observed.program, observed.scale)


def some_theta(structure: Structure, seed: int = 1) -> Vector:
    mean, sd = structure.prior
    return mean + 0.4 * np.random.default_rng(seed).normal(size=len(mean)) * sd


def structured_part(posterior: StructuredPosterior, points: Points) -> tuple[Vector, Vector]:
    """Return mean and deviation of the structured part. The residual has no quadratic form, so samples exclude it."""
    kernel, x = posterior.kernel, posterior.x
    new = Encoded.of(kernel.structure, points)
    noise = np.broadcast_to(kernel.noise + JITTER + posterior.noise, len(x))
    total = kernel(x, x) + kernel.residual(x, x) + np.diag(noise)
    cross = kernel(new, x)
    variance = kernel.diagonal(new) - np.sum(cross * np.linalg.solve(total, cross.T).T, axis=1)
    return cross @ np.linalg.solve(total, posterior.y), np.sqrt(variance)


@pytest.mark.parametrize("name", ["nested", "alternatives", "discrete", "bound_numbers"])
class TestStructuredSurrogate(Conformance):
    inflated = False

    def made(self, observed: Observed) -> Surrogate[Any, Any]:
        return StructuredSurrogate(structure_of(observed), iterations=5)

    def sampled(self, posterior: StructuredPosterior, points: Points) -> tuple[Vector, Vector]:
        return structured_part(posterior, points)


@pytest.mark.parametrize("name", ["nested", "conv_net"])
@pytest.mark.parametrize("near", [256, 10])
def test_conditioning_is_a_fit_to_all_values_at_the_same_hyperparameters(
    name: str, near: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If variances are conditioned on a subset of the points, the subset includes the given points."""
    monkeypatch.setattr("mipcash.surrogates.structured.posterior.NEAR", near)
    observed = observed_in(name)
    structure = structure_of(observed)
    kernel, rng = Kernel(structure, some_theta(structure)), np.random.default_rng(0)
    x, further = (Encoded.of(structure, p) for p in (observed.points, observed.new[:4]))
    warp, noise, values = Warp.of(observed.values, 1.0), 0.1 * rng.random(len(x)), rng.normal(size=4)
    before = StructuredPosterior.fit(kernel, x, observed.values, warp, noise)
    grown = before.given(observed.new[:4], values, 0.2)
    losses = np.concatenate([observed.values, [warp.inverse(v) for v in values]])
    whole = StructuredPosterior.fit(kernel, x.joined(further), losses, warp, np.append(noise, np.full(4, 0.2)))
    np.testing.assert_allclose(grown.lower, whole.lower, atol=1e-9)
    np.testing.assert_allclose(grown.weights, whole.weights, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(grown.predict(observed.every)[0], whole.predict(observed.every)[0], atol=1e-8)
    assert set(range(len(x), len(x) + 4)) <= set(grown.near.tolist())
    if near == 256:
        np.testing.assert_allclose(grown.predict(observed.every), whole.predict(observed.every), atol=1e-8)
        draws = [p.sample(np.random.default_rng(1)).values(observed.every) for p in (grown, whole)]
        np.testing.assert_allclose(*draws, atol=1e-6)
    else:
        assert (grown.predict(observed.new[:4])[1] < before.predict(observed.new[:4])[1]).all()


@pytest.mark.parametrize("name", ["nested", "conv_net"])
def test_a_factor_grows_as_it_is_computed_anew_and_a_cached_one_has_the_same_bits(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mipcash.surrogates.structured.posterior.EXTENSIONS", 6)
    observed = observed_in(name)
    structure, t = structure_of(observed), len(observed.values)
    kernel, x = Kernel(structure, some_theta(structure)), Encoded.of(structure, observed.points)
    at_once = factor(kernel, x, 0.0, t - 5)
    structure.factors.clear()
    step_by_step = [factor(kernel, x[:n], 0.0, t - 5) for n in range(t - 5, t + 1)][-1]
    np.testing.assert_array_equal(at_once, step_by_step)
    np.testing.assert_allclose(at_once, factor(kernel, x, 0.0), atol=1e-9)
    assert len(structure.factors) == 1
    shorter, other_order = factor(kernel, x[: t - 2], 0.0, t - 5), x[np.r_[: t - 2, t - 1, t - 2]]
    np.testing.assert_allclose(shorter, at_once[: t - 2, : t - 2], atol=1e-12)
    np.testing.assert_allclose(factor(kernel, other_order, 0.0, t - 5), factor(kernel, other_order, 0.0), atol=1e-9)
    repeated = x.joined(x[:1])  # its variance given the others is about the noise
    np.testing.assert_allclose(factor(kernel, repeated, 0.0, t), factor(kernel, repeated, 0.0), atol=1e-6)
    monkeypatch.setattr("mipcash.surrogates.structured.posterior.CACHED", t * t)
    other = Kernel(structure, some_theta(structure, 2))
    np.testing.assert_allclose(factor(other, x, 0.0, t - 5), factor(other, x, 0.0), atol=1e-9)
    assert len(structure.factors) == 1


@pytest.mark.parametrize("name", ["nested", "conv_net"])
def test_the_posterior_given_the_near_observations_is_a_fit_to_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mipcash.surrogates.structured.posterior.NEAR", 10)
    observed = observed_in(name)
    structure = structure_of(observed)
    kernel, x = Kernel(structure, some_theta(structure)), Encoded.of(structure, observed.points)
    whole = StructuredPosterior.fit(kernel, x, observed.values, noise=0.1)
    near = StructuredPosterior.fit(kernel, x[whole.near], observed.values[whole.near], whole.warp, 0.1)
    np.testing.assert_allclose(whole.near_part.predict(observed.every), near.predict(observed.every), atol=1e-8)
    np.testing.assert_allclose(whole.near_part.predict(observed.every)[1], whole.predict(observed.every)[1], atol=1e-8)
    assert whole.near_part.near_part is whole.near_part


@pytest.mark.parametrize(
    ("name", "held"), [("nested", False), ("nested", True), ("discrete", False), ("bound_numbers", False)]
)
def test_the_evidence_under_a_vector_of_noise_is_the_density_with_its_gradient(name: str, held: bool) -> None:
    observed = observed_in(name)
    structure = structure_of(observed)
    theta, rng = some_theta(structure), np.random.default_rng(1)
    tables = Tables.of(structure, observed.points)
    y, noise = rng.normal(size=len(tables)), rng.random(len(tables))
    evidence = Evidence(tables, y, noise, held=theta if held else None)
    value, gradient = evidence(theta)
    kernel, x = Kernel(structure, theta), tables.x
    covariance = kernel(x, x) + kernel.residual(x, x) + np.diag(kernel.noise + JITTER + noise)
    mean, sd = structure.prior
    density = multivariate_normal(np.zeros(len(x)), covariance).logpdf(y) + norm.logpdf(theta, mean, sd).sum()
    constant = 0.5 * (len(x) + len(theta)) * np.log(2 * np.pi) + np.log(sd).sum()
    assert value == pytest.approx(-density - constant, rel=1e-9)
    step = 1e-5
    differences = np.array(
        [(evidence(theta + step * e)[0] - evidence(theta - step * e)[0]) / (2 * step) for e in np.eye(len(theta))]
    )
    np.testing.assert_allclose(gradient, differences, rtol=1e-4, atol=1e-5)
    one, each = (Evidence(tables, y, v)(theta) for v in (0.25, np.full(len(y), 0.25)))
    assert one[0] == each[0]
    np.testing.assert_array_equal(one[1], each[1])


def test_a_fit_uses_a_limited_number_of_points_with_the_best_one_and_their_noise() -> None:
    space = nested()
    program, scale = compiled(space).program, Domain.of(space).scale
    structure, configs = Structure(program, scale), space.sample(FITTED + 40, 0)
    points = Points(np.array([program.encode(c) for c in configs]), scale.units(configs))
    tables = Tables.of(structure, points)
    y = tables.x.u[:, 0] + 3.0 * tables.x.z[:, 0] * tables.x.u[:, 1]
    y, noise = (y - y.mean()) / y.std(), 0.01 * np.arange(float(len(y)))
    evidence = Evidence(tables, y, noise)
    np.testing.assert_array_equal(evidence.noise, noise[[int(np.flatnonzero(y == value)[0]) for value in evidence.y]])
    evidence = Evidence(tables, y)
    assert len(evidence.y) == FITTED
    assert evidence.y.min() == y.min()
    theta, value = fit(evidence, [], iterations=4)
    assert value < evidence(structure.prior[0])[0]
    again, _ = fit(evidence, [theta], iterations=4)
    assert evidence(again)[0] <= value + 1e-9


def test_hyperparameters_are_searched_at_first_then_kept_between_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    observed = observed_in("discrete")
    searches: list[int] = []

    def watched(evidence: Evidence, *rest: Any) -> tuple[Vector, float]:
        searches.append(len(evidence.y))
        return fit(evidence, *rest)

    monkeypatch.setattr(module, "fit", watched)
    monkeypatch.setattr(module, "COMPARED", 5)
    monkeypatch.setattr(module, "every", lambda t: 1 if t < 14 else 3)
    surrogate = StructuredSurrogate(structure_of(observed), iterations=1, restart_every=3)
    state, counts = dict[str, Any](), []
    for t in (10, 11, 12, 13, 14, 14, 14, 14, 14):
        del searches[:]
        before = state.get("theta")
        _, state = surrogate.fit(surrogate.prepare(observed.points[:t]), observed.values[:t], state)
        counts.append(len(searches))
        assert searches or state["theta"] == before
    # a restart compares five warps on five observations, chooses a start there, and continues with all
    assert counts == [7, 1, 1, 7, 0, 0, 1, 0, 0]
    assert state["fits"] == 9


# -- the warp --------------------------------------------------------------------------------------------------------


LOSSES = st.lists(st.floats(-1e6, 1e6, allow_nan=False), min_size=3, max_size=30).filter(
    lambda v: max(v) - min(v) > 1e-3
)


@given(LOSSES, st.sampled_from(SHAPES))
def test_the_warp_standardises_keeps_the_order_and_is_invertible(
    values: list[float], shape: tuple[float, float]
) -> None:
    losses = np.sort(np.array(values))
    warp = Warp.of(losses, *shape)
    warped = warp(losses)
    assert np.all(np.diff(warped) >= 0)
    assert abs(warped.mean()) < 1e-6
    assert warped.std() == pytest.approx(1.0, abs=1e-6)
    back = np.array([warp.inverse(v) for v in warped])
    np.testing.assert_allclose(back, losses, rtol=1e-6, atol=1e-6 * (losses[-1] - losses[0]))


@pytest.mark.parametrize("shape", SHAPES)
def test_slopes_and_the_jacobian_agree_with_finite_differences(shape: tuple[float, float]) -> None:
    losses = np.random.default_rng(0).lognormal(size=20)
    warp, step = Warp.of(losses, *shape), 1e-7
    slopes = (warp(losses + step) - warp(losses - step)) / (2 * step)
    np.testing.assert_allclose(warp.slope(losses), slopes, rtol=1e-5)
    assert warp.log_jacobian(losses) == pytest.approx(np.sum(np.log(slopes)), abs=1e-4)


@pytest.mark.parametrize(
    "losses",
    [
        np.array([1e-90, 3e-90, 1e90]),
        np.full(5, 3.0),
        np.zeros(4),
        np.array([1e300, 1e300, -1e300, 2e299]),
        np.array([7.0]),
    ],
)
def test_constant_and_huge_losses_stay_finite(losses: np.ndarray) -> None:
    for shape in SHAPES:
        warp = Warp.of(losses, *shape)
        assert np.all(np.isfinite(warp(losses)))
        assert np.isfinite(warp.inverse(0.0))


@pytest.mark.parametrize("factor", [1e-140, 1e-20, 1.0, 1e20])
def test_a_warp_does_not_depend_on_the_unit_and_one_penalty_leaves_the_other_losses_apart(factor: float) -> None:
    losses = np.random.default_rng(0).uniform(1.0, 2.0, 20)
    penalised = np.append(losses, 1e25)
    for values in (losses, penalised):
        np.testing.assert_allclose(
            Warp.of(factor * values, 4.0)(factor * values), Warp.of(values, 4.0)(values), atol=1e-9
        )
    assert np.std(Warp.of(penalised, 4.0)(penalised)[:20]) > 0.01


def test_a_low_turn_is_chosen_for_losses_over_many_orders_of_magnitude() -> None:
    """Their logarithm is a smooth function of the point, and the median says nothing about the small ones."""
    observed = observed_in("bound_numbers")
    smooth = ((observed.points.units - 0.3) ** 2).sum(axis=1)
    losses = 10.0 ** (12.0 * smooth / smooth.max())
    surrogate = StructuredSurrogate(structure_of(observed))
    tables = surrogate.prepare(observed.points)
    shapes = {
        scale: surrogate.fit(tables, values, {})[1]["shape"] for scale, values in [("log", smooth), ("wide", losses)]
    }
    assert shapes["log"][1] == 0.5
    assert shapes["wide"][1] < 0.5
