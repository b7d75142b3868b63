"""The structured surrogate: the contract, its conditioning against a refit, noise, and the life of its hyperparameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from mipcash.program.forms import Vector
from mipcash.program.points import Points
from mipcash.surrogates.protocols import Surrogate
from mipcash.surrogates.structured import surrogate as module
from mipcash.surrogates.structured.encoded import Encoded
from mipcash.surrogates.structured.evidence import JITTER, Evidence
from mipcash.surrogates.structured.kernel import Kernel
from mipcash.surrogates.structured.posterior import StructuredPosterior
from mipcash.surrogates.structured.structure import Structure
from mipcash.surrogates.structured.surrogate import StructuredSettings, StructuredSurrogate
from mipcash.surrogates.structured.training_tables import Tables
from mipcash.surrogates.structured.warping import STRENGTHS, Warp
from tests.surrogates.conformance import SPACES, Conformance, Observed, observed_in
from tests.surrogates.test_structured import some_theta


def structure_of(observed: Observed) -> Structure:
    return Structure.of(observed.program, observed.scale)


def structured_part(posterior: StructuredPosterior, points: Points) -> tuple[Vector, Vector]:
    """Mean and deviation of the structured part alone: the residual is in no form, and so in no sample."""
    kernel, x = posterior.kernel, posterior.x
    new = Encoded.of(kernel.structure, points)
    noise = np.broadcast_to(kernel.noise + JITTER + posterior.noise, len(x))
    total = kernel(x, x) + kernel.residual(x, x) + np.diag(noise)
    cross = kernel(new, x)
    variance = kernel.diagonal(new) - np.sum(cross * np.linalg.solve(total, cross.T).T, axis=1)
    return cross @ np.linalg.solve(total, posterior.y), np.sqrt(variance)


@pytest.mark.parametrize("name", list(SPACES))
class TestStructuredSurrogate(Conformance):
    def made(self, observed: Observed) -> Surrogate[Any, Any]:
        return StructuredSurrogate(structure_of(observed), StructuredSettings(iterations=5))

    def sampled(self, posterior: StructuredPosterior, points: Points) -> tuple[Vector, Vector]:
        return structured_part(posterior, points)


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("near", [256, 10])
def test_conditioning_is_a_fit_to_everything_at_the_same_hyperparameters(
    name: str, near: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where variances are conditioned on a part: what was given always counts."""
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


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("held", [False, True])
def test_the_evidence_under_a_vector_of_noise_is_the_density_with_its_gradient(name: str, held: bool) -> None:
    observed = observed_in(name)
    structure = structure_of(observed)
    theta, rng = some_theta(structure), np.random.default_rng(1)
    tables = Tables.of(structure, observed.points)
    y, noise = rng.normal(size=len(tables)), rng.random(len(tables))
    evidence = Evidence.of(tables, y, noise, held=theta if held else None)
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
    one, each = (Evidence.of(tables, y, v)(theta) for v in (0.25, np.full(len(y), 0.25)))
    assert one[0] == each[0]
    np.testing.assert_array_equal(one[1], each[1])


def test_a_part_of_the_observations_takes_its_own_noise() -> None:
    observed = observed_in("conv_net")
    structure = structure_of(observed)
    tables = Tables.of(structure, observed.points)
    noise = np.arange(float(len(tables)))
    evidence = Evidence.of(tables, observed.values, noise, limit=8)
    kept = [int(np.flatnonzero(observed.values == y)[0]) for y in evidence.y]
    np.testing.assert_array_equal(evidence.noise, noise[kept])
    assert len(kept) == 8


def test_tables_are_made_once_for_all_outputs_and_warps(monkeypatch: pytest.MonkeyPatch) -> None:
    observed = observed_in("conv_net")
    structure = structure_of(observed)
    made: list[int] = []
    entries = Tables.entries.func  # type: ignore[attr-defined]

    def counted(self: Tables) -> Any:
        made.append(len(self))
        return entries(self)

    counted_property = type(Tables.entries)(counted)
    counted_property.__set_name__(Tables, "entries")
    monkeypatch.setattr(Tables, "entries", counted_property)
    surrogate = StructuredSurrogate(structure, StructuredSettings(iterations=2))
    shared = surrogate.prepare(observed.points)
    for values in (observed.values, -observed.values, observed.values**2):
        surrogate.fit(shared, values, {})
    assert made == [len(observed.points)]


@pytest.mark.parametrize("strength", STRENGTHS)
def test_noise_goes_through_the_warp_by_its_slope(strength: float) -> None:
    losses = np.array([0.3, 1.0, 2.5, 2.6, 7.0, 40.0])
    warp, step = Warp.of(losses, strength), 1e-6
    np.testing.assert_allclose(warp.slope(losses), (warp(losses + step) - warp(losses - step)) / (2 * step), rtol=1e-5)


def test_hyperparameters_are_searched_at_first_then_kept_between_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    observed = observed_in("discrete")
    searches: list[int] = []
    fit = module.fit

    def watched(evidence: Evidence, *rest: Any) -> tuple[Vector, float]:
        searches.append(len(evidence.y))
        return fit(evidence, *rest)

    monkeypatch.setattr(module, "fit", watched)
    settings = StructuredSettings(iterations=1, restart_every=3, settled=14, sparing=4, compared=5)
    assert [settings.every(t) for t in (1, 13, 14, 16)] == [1, 1, 3, 4]
    surrogate, state, counts = StructuredSurrogate(structure_of(observed), settings), dict[str, Any](), []
    for t in (10, 11, 12, 13, 14, 14, 14, 14, 14):
        del searches[:]
        before = state.get("theta")
        _, state = surrogate.fit(surrogate.prepare(observed.points[:t]), observed.values[:t], state)
        counts.append(len(searches))
        assert searches or state["theta"] == before
    # a restart compares three warps on five observations, chooses a start there, and goes on with all
    assert counts == [5, 1, 1, 5, 0, 0, 1, 0, 0]
    assert state["fits"] == 9


def test_a_state_of_earlier_journals_is_taken() -> None:
    observed = observed_in("conv_net")
    surrogate = StructuredSurrogate(structure_of(observed))
    prepared = surrogate.prepare(observed.points)
    median = surrogate.structure.prior[0]
    written = {"theta": (median + 0.1).tolist(), "strength": 4.0, "fits": 1}
    posterior, state = surrogate.fit(prepared, observed.values, written)
    assert posterior.warp.strength == 4.0
    assert set(state) == {"theta", "strength", "fits"}
    assert state["fits"] == 2
