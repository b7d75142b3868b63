"""Closed forms of ADMMBO's subproblems against definitions, Monte Carlo and finite differences; updates of ADMM."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from mipcash.acquisition.constrained import Interval
from mipcash.methods.admmbo.coordinates import Coordinates, Quadratic
from mipcash.methods.admmbo.models import Augmented, FeasibilityEI, augmented_ei
from mipcash.methods.admmbo.settings import AdmmboSettings
from mipcash.methods.admmbo.state import OPT, AdmmState, Asked
from mipcash.space.domain import Domain
from mipcash.surrogates.structured.encoded import Encoded
from mipcash.surrogates.structured.kernel import Kernel
from mipcash.surrogates.structured.posterior import StructuredPosterior
from mipcash.surrogates.structured.structure import Structure
from tests.spaces import ALL


class Setting:
    """Mixed space with a posterior of one output, legal points to evaluate it at, and two centres."""

    def __init__(self, name: str = "conv_net", kind: str = "unit") -> None:
        self.domain = Domain.of(ALL[name]())
        rng = np.random.default_rng(3)
        structure = Structure(self.domain.program, self.domain.scale)
        observed = self.domain.encode(self.domain.sample(10, rng))
        kernel = Kernel(structure, structure.prior[0])
        self.posterior = StructuredPosterior.fit(kernel, Encoded.of(structure, observed), rng.normal(size=10))
        self.points = self.domain.encode(self.domain.sample(12, rng))
        self.space = Coordinates.of(self.domain, kind)
        self.centres = rng.uniform(-0.3, 1.2, size=(2, self.space.size))

    def quadratic(self, weight: float = 0.7) -> Quadratic:
        return Quadratic(self.space, weight, self.centres)


def sections_agree(acquisition, setting: Setting, rtol: float = 2e-4) -> None:
    """Assert that sections have the values of batches and the slopes of finite differences."""
    values = acquisition.values(setting.points)
    for point, value in zip(setting.points, values, strict=True):
        section, u = acquisition.section(point.one_hot(setting.domain.program)), point.units
        assert section(u)[0] == pytest.approx(value, rel=1e-9, abs=1e-9)
        step = 1e-6
        slopes = [(section(u + step * e)[0] - section(u - step * e)[0]) / (2.0 * step) for e in np.eye(len(u))]
        assert section(u)[1] == pytest.approx(np.array(slopes), rel=rtol, abs=1e-5 * max(1.0, abs(value)))


@pytest.mark.parametrize(("name", "kind"), [("conv_net", "natural"), ("bound_numbers", "unit")])
def test_the_penalty_is_the_sum_of_squared_distances(name: str, kind: str) -> None:
    setting = Setting(name, kind)
    vectors = setting.space(setting.points)
    expected = [0.35 * sum(float(np.sum((p - c) ** 2)) for c in setting.centres) for p in vectors]
    assert setting.quadratic().values(setting.points) == pytest.approx(np.array(expected))
    sections_agree(setting.quadratic(), setting)


def test_categories_and_ends_of_ranges_have_distance_one_and_inactive_parameters_none() -> None:
    setting = Setting("bound_numbers")
    here = {"a": 0.0, "b": 0.0, "kind": "plain", "size": 1, "level": 0}
    deep = {**here, "kind": "deep", "extra": 1.0}
    points = setting.domain.encode([here, {**here, "level": 4}, {**here, "a": 1.0}, deep])
    points.units[:, setting.domain.scale.labels.index("extra")] = [0.9, 0.1, 0.1, 0.5]
    vectors = setting.space(points)
    assert np.linalg.norm(vectors[1:] - vectors[0], axis=1) == pytest.approx(1.0)
    natural = Setting("conv_net", "natural")
    widths = dict(zip(natural.domain.scale.labels, natural.space.widths.tolist(), strict=True))
    assert widths["lr"] == pytest.approx(math.log(100.0))
    assert widths["selector.percentile.percentile"] == pytest.approx(98.0)


def test_optimality_improvement_agrees_with_monte_carlo() -> None:
    """Eq. 11: E max(0, u+ - f - q), f ~ N(mu, sd^2)."""
    setting = Setting()
    known = setting.quadratic()
    moments = Augmented(setting.posterior, known)
    best = float(np.median(moments.predict(setting.points)[0]))
    acquisition = augmented_ei(moments, best)
    mean, deviation = setting.posterior.predict(setting.points)
    draws = mean + deviation * np.random.default_rng(0).normal(size=(200_000, len(mean)))
    gains = np.maximum(0.0, best - draws - known.values(setting.points))
    error = gains.std(axis=0) / math.sqrt(len(gains))
    assert np.all(np.abs(np.exp(-acquisition.values(setting.points)) - gains.mean(axis=0)) < 5.0 * error + 1e-9)
    sections_agree(acquisition, setting)


@pytest.mark.parametrize("above", [0.0, 1.2])
def test_feasibility_improvement_agrees_with_monte_carlo(above: float) -> None:
    """Eq. 13: E max(0, h+ - 1(c > 0) - q), c ~ N(mu, sd^2)."""
    setting = Setting()
    known, interval = setting.quadratic(), Interval(-math.inf, 0.2)
    q = known.values(setting.points)
    best = float(np.median(q)) + above
    acquisition = FeasibilityEI(setting.posterior, interval, known, best)
    mean, deviation = setting.posterior.predict(setting.points)
    draws = mean + deviation * np.random.default_rng(1).normal(size=(200_000, len(mean)))
    gains = np.maximum(0.0, best - (draws > 0.2) - q)
    error = gains.std(axis=0) / math.sqrt(len(gains))
    inside = best - q > 1e-3
    found = np.exp(-acquisition.values(setting.points))
    assert inside.any()
    assert np.all(np.abs(found - gains.mean(axis=0))[inside] < 5.0 * error[inside] + 1e-9)
    assert np.array_equal(acquisition.improves(setting.points), bool(np.any(q < best)))
    # eq. 14; the last value lies just above 1, with a probability of feasibility close to 0
    log, _, _ = acquisition.logarithm(np.array([0.4, 1.4, 1.0 + 1e-9]), np.log(np.array([0.3, 0.3, 1e-30])))
    assert np.exp(log[:2]) == pytest.approx([0.4 * 0.3, 1.4 * 0.3 + 0.4 * 0.7])
    assert np.exp(log[2]) == pytest.approx(1e-9, rel=1e-6)
    sections_agree(acquisition, setting, 1e-3)


def test_where_the_improvement_is_zero_its_logarithm_leads_to_the_centre() -> None:
    """For every h+, the logarithm is finite, differentiable at its continuation, and falls with the distance."""
    setting = Setting()
    for best in (0.0, 1e-12, 0.01, 1.0):
        acquisition = FeasibilityEI(setting.posterior, Interval(-math.inf, -50.0), setting.quadratic(), best)
        kept = np.full(4, -1e4)
        a = np.array([-1e3, -1.0, -1e-9, 0.0])
        log, by_a, by_kept = acquisition.logarithm(a, kept)
        assert np.all(np.isfinite([log, by_a, by_kept]))
        assert np.all(np.diff(log) > 0.0)
        assert np.all(by_a > 0.0)
        edge = max(1e-6 * best, 1e-15)
        low, high = (acquisition.logarithm(np.array(edge * (1.0 + s)), np.array(0.0)) for s in (-1e-9, 1e-9))
        assert low[0] == pytest.approx(high[0], abs=1e-8)
        assert low[1] == pytest.approx(high[1], rel=1e-6)
        assert np.all(np.isfinite(acquisition.values(setting.points)))


# -- updates -----------------------------------------------------------------------------------------------------------

SETTINGS = AdmmboSettings(balance=None, tolerance=1e-6)


def test_with_exact_subproblems_it_is_admm_and_finds_the_constrained_minimum() -> None:
    """Minimise ||x - (2, 2)||^2 with x_1 <= 1 and x_1 + x_2 <= 2. The solution is (1, 1); projections solve FEAS."""
    state, rho = AdmmState.started(2, 2, 0.5), 0.5

    def projected(p: np.ndarray) -> np.ndarray:
        over = max(0.0, p[1].sum() - 2.0)
        return np.array([[min(p[0, 0], 1.0), p[0, 1]], p[1] - over / 2.0])

    for _ in range(200):
        centres = state.z - state.y / rho  # eq. 9, first line
        x = (2.0 * np.array([2.0, 2.0]) + rho * centres.sum(axis=0)) / (2.0 + 2.0 * rho)
        state = state.optimised(x)
        state = state.restored(projected(x + state.y / rho), True, SETTINGS)
        if state.converged:
            break
    assert state.converged
    assert state.x == pytest.approx([1.0, 1.0], abs=1e-5)
    assert state.iteration > 5


def test_residuals_are_those_of_the_paper_and_an_infeasible_solution_is_not_converged() -> None:
    state = replace(AdmmState.started(1, 2, 0.1), x=np.array([0.3, 0.4]))
    z = np.array([[0.0, 0.4]])
    after = state.restored(z, True, SETTINGS)
    assert after.primal == pytest.approx(0.3)
    assert after.dual == pytest.approx(0.1 * 0.4)
    assert after.y == pytest.approx(np.array([[0.03, 0.0]]))
    again = replace(after, x=z[0]).restored(z, True, SETTINGS)
    assert (again.primal, again.dual, again.converged) == (0.0, 0.0, True)
    assert not replace(after, x=z[0]).restored(z, False, SETTINGS).converged


def test_rho_is_balanced_as_in_eq_15() -> None:
    settings = AdmmboSettings()
    state = replace(AdmmState.started(1, 1, 0.1), x=np.array([1.0]), z=np.array([[0.5]]))
    moved = {z: state.restored(np.array([[z]]), True, settings).rho for z in (0.5, 0.0, 1.0)}
    assert moved == {0.5: 0.2, 0.0: 0.2, 1.0: 0.05}  # residuals (r, s): (0.5, 0), (1, 0.05), (0, 0.05)
    even = replace(state, rho=1.0).restored(np.array([[0.75]]), True, settings)
    assert even.rho == 1.0
    fixed = state.restored(np.array([[0.5]]), True, AdmmboSettings(balance=None))
    assert fixed.rho == 0.1
    for _ in range(200):
        state = replace(state, x=np.array([1.0])).restored(np.array([[0.0]]), True, settings)
    assert state.rho <= 0.1 * 1e8


def test_feasibility_subproblems_take_turns_and_do_not_wait_for_each_other() -> None:
    state = AdmmState.started(3, 2, 0.1).optimised(np.zeros(2))
    order = []
    for k in range(6):  # no result is reported: all are pending
        order.append(state.next(2))
        state = state.counted(order[-1], k)
    assert order == [1, 2, 3, 1, 2, 3]
    assert not state.solved(2)
    told = replace(state, asked=tuple(a for a in state.asked if a.subproblem != 2))
    assert told.next(2) == 2  # beyond its steps, while the other subproblems are pending
    assert replace(state, asked=()).solved(2)
    assert replace(state, made=(0, 4, 4, 4)).solved(2)  # at most twice its steps


def test_the_optimality_subproblem_has_its_steps_first() -> None:
    state = AdmmState.started(2, 2, 0.1)
    for k in range(3):
        assert state.next(3) == OPT
        assert not state.solved(3)
        state = state.counted(OPT, k)
    assert not state.solved(3)
    assert replace(state, asked=(Asked(0, 7, OPT),)).solved(3)  # pending from another iteration
