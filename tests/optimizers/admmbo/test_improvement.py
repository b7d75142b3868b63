"""The closed forms of ADMMBO's subproblems, against their definitions, Monte Carlo and finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mipcash.acquisition.constrained import Interval
from mipcash.methods.admmbo.coordinates import Coordinates, Quadratic
from mipcash.methods.admmbo.models import Augmented, FeasibilityEI, augmented_ei
from mipcash.program.points import Points
from mipcash.space.domain import Domain
from mipcash.surrogates.structured.encoded import Encoded
from mipcash.surrogates.structured.kernel import Kernel
from mipcash.surrogates.structured.posterior import StructuredPosterior
from mipcash.surrogates.structured.structure import Structure
from tests.spaces import ALL


class Setting:
    """A mixed space, a posterior of some output, legal points to look at, and two centres."""

    def __init__(self, name: str = "conv_net", kind: str = "unit") -> None:
        self.domain = Domain.of(ALL[name]())
        rng = np.random.default_rng(3)
        structure = Structure.of(self.domain.program, self.domain.scale)
        observed = self.domain.encode(self.domain.sample(10, rng))
        kernel = Kernel(structure, structure.prior[0])
        self.posterior = StructuredPosterior.fit(kernel, Encoded.of(structure, observed), rng.normal(size=10))
        self.points = self.domain.encode(self.domain.sample(12, rng))
        self.space = Coordinates.of(self.domain, kind)
        self.centres = rng.uniform(-0.3, 1.2, size=(2, self.space.size))

    def quadratic(self, weight: float = 0.7) -> Quadratic:
        return Quadratic(self.space, weight, self.centres)


def sections_agree(acquisition, setting: Setting, rtol: float = 2e-4) -> None:
    """Sections have the values of batches, and the slopes of finite differences."""
    values = acquisition.values(setting.points)
    for point, value in zip(setting.points, values, strict=True):
        section, u = acquisition.section(point.one_hot(setting.domain.program)), point.units
        assert section(u)[0] == pytest.approx(value, rel=1e-9, abs=1e-9)
        step = 1e-6
        slopes = [(section(u + step * e)[0] - section(u - step * e)[0]) / (2.0 * step) for e in np.eye(len(u))]
        assert section(u)[1] == pytest.approx(np.array(slopes), rel=rtol, abs=1e-5 * max(1.0, abs(value)))


@pytest.mark.parametrize("name", list(ALL))
@pytest.mark.parametrize("kind", ["unit", "natural"])
def test_the_penalty_is_the_sum_of_squared_distances(name: str, kind: str) -> None:
    setting = Setting(name, kind)
    vectors = setting.space(setting.points)
    expected = [0.35 * sum(float(np.sum((p - c) ** 2)) for c in setting.centres) for p in vectors]
    assert setting.quadratic().values(setting.points) == pytest.approx(np.array(expected))
    sections_agree(setting.quadratic(), setting)


def test_categories_are_as_far_apart_as_ends_and_what_is_inactive_does_not_count() -> None:
    setting = Setting("bound_numbers")
    program, space = setting.domain.program, setting.space
    configs = [
        {"a": 0.0, "b": 0.0, "kind": "plain", "size": 1, "level": 0},
        {"a": 0.0, "b": 0.0, "kind": "plain", "size": 1, "level": 4},
        {"a": 1.0, "b": 0.0, "kind": "plain", "size": 1, "level": 0},
    ]
    here, level, end = space(setting.domain.encode(configs))
    assert np.linalg.norm(level - here) == pytest.approx(1.0)
    assert np.linalg.norm(end - here) == pytest.approx(1.0)
    plain = setting.domain.encode(configs[:1])
    kind = next(g for g, group in enumerate(program.groups) if group.label == "kind")
    deep = plain.levels.copy()
    deep[0, kind] = 1 - deep[0, kind]
    apart = space(Points(deep, plain.units)) - space(plain)
    assert np.linalg.norm(apart) == pytest.approx(1.0)
    moved = plain.units.copy()
    moved[0, setting.domain.scale.labels.index("extra")] = 0.9
    assert np.array_equal(space(Points(plain.levels, moved)), space(plain))


def test_numbers_are_as_wide_as_declared_in_natural_coordinates() -> None:
    setting = Setting("conv_net", "natural")
    widths = dict(zip(setting.domain.scale.labels, setting.space.widths.tolist(), strict=True))
    assert widths["lr"] == pytest.approx(math.log(100.0))
    assert widths["selector.percentile.percentile"] == pytest.approx(98.0)


def test_optimality_improvement_is_what_monte_carlo_says() -> None:
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


@pytest.mark.parametrize("above", [0.0, 0.4, 1.2])
def test_feasibility_improvement_is_what_monte_carlo_says(above: float) -> None:
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
    sections_agree(acquisition, setting, 1e-3)


def test_feasibility_improvement_has_the_three_cases_of_eq_14() -> None:
    setting = Setting()
    acquisition = FeasibilityEI(setting.posterior, Interval(-math.inf, 0.0), setting.quadratic(), 2.0)
    kept = np.log(np.array([0.3, 0.3, 1e-30]))
    log, _, _ = acquisition.logarithm(np.array([0.4, 1.4, 1.0 + 1e-9]), kept)
    assert np.exp(log[:2]) == pytest.approx([0.4 * 0.3, 1.4 * 0.3 + 0.4 * 0.7])
    assert np.exp(log[2]) == pytest.approx(1e-9, rel=1e-6)


def test_where_the_improvement_is_zero_its_logarithm_leads_to_the_centre() -> None:
    """Finite, once differentiable where it is continued, falling with the distance; whatever h+ is."""
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
