"""The contract of acquisitions is open: one over two posteriors and a split one, known to this file alone, are searched alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import log_ndtr

from mipcash.acquisition.acquisition import Acquisition
from mipcash.acquisition.analytic import LOG_ROOT_2PI, AnalyticAcquisition, LogEI, SampleAcquisition
from mipcash.program.points import Points
from mipcash.surrogates.protocols import Section
from mipcash.surrogates.structured.encoded import Encoded
from mipcash.surrogates.structured.posterior import StructuredPosterior
from tests.acquisition.checks import gradient_is_that_of_values, search_takes_it
from tests.acquisition.test_mixed_search import Setting, legal_levels, value_of, values_of
from tests.spaces import ALL


@dataclass(frozen=True)
class ConstrainedEI:
    """Minus log expected improvement of the loss, minus the log probability that the limit ``g <= bound`` is kept."""

    loss: StructuredPosterior
    limit: StructuredPosterior
    best: float
    bound: float

    def values(self, points: Points) -> np.ndarray:
        mean, deviation = self.limit.predict(points)
        return LogEI(self.best)(*self.loss.predict(points)) - log_ndtr((self.bound - mean) / deviation)

    def section(self, z: np.ndarray) -> Section:
        loss, limit = AnalyticAcquisition(self.loss, LogEI(self.best)).section(z), self.limit.section(z)

        def at(u: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = loss(u)
            mean, deviation, by_mean, by_deviation = limit(u)
            t = (self.bound - mean) / deviation
            log = float(log_ndtr(t))
            h = float(np.exp(-0.5 * t**2 - LOG_ROOT_2PI - log))
            return value - log, gradient + h / deviation * (by_mean + t * by_deviation)

        return at


@dataclass(frozen=True)
class Split:
    """A sample, and a multiplier and a penalty that draw the numbers to their copy: a step of operator splitting."""

    sample: SampleAcquisition
    copy: np.ndarray
    multiplier: np.ndarray
    rho: float

    def values(self, points: Points) -> np.ndarray:
        apart = points.units - self.copy
        return self.sample.values(points) + apart @ self.multiplier + 0.5 * self.rho * np.sum(apart**2, axis=1)

    def section(self, z: np.ndarray) -> Section:
        inner = self.sample.section(z)

        def at(u: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = inner(u)
            apart = u - self.copy
            value += float(apart @ self.multiplier + 0.5 * self.rho * apart @ apart)
            return value, gradient + self.multiplier + self.rho * apart

        return at


def constrained(setting: Setting, seed: int) -> ConstrainedEI:
    loss = setting.acquisition.posterior
    values = np.random.default_rng([seed, 1]).normal(size=len(loss.y))
    limit = StructuredPosterior.fit(loss.kernel, Encoded.of(setting.structure, setting.points), values)
    return ConstrainedEI(loss, limit, float(loss.fitted.min()), float(np.quantile(limit.fitted, 0.4)))


def split(setting: Setting, seed: int) -> Split:
    rng = np.random.default_rng([seed, 2])
    d = setting.points.units.shape[1]
    sample = SampleAcquisition(setting.acquisition.posterior.sample(rng))
    return Split(sample, rng.random(d), rng.normal(size=d), 3.0)


MADE = [constrained, split]


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize("name", list(ALL))
def test_the_mixed_search_takes_it_as_it_is(name: str, make) -> None:  # type: ignore[no-untyped-def]
    setting = Setting(ALL[name](), 1, LogEI(-0.5))
    acquisition: Acquisition = make(setting, 1)
    search_takes_it(acquisition, setting)


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize("name", ["conv_net", "bound_numbers"])
def test_its_gradient_is_that_of_its_values(name: str, make) -> None:  # type: ignore[no-untyped-def]
    setting = Setting(ALL[name](), 2, LogEI(-0.5))
    acquisition: Acquisition = make(setting, 2)
    gradient_is_that_of_values(acquisition, setting, np.random.default_rng(0))


def test_on_a_small_discrete_space_it_finds_the_best_of_all() -> None:
    hits = 0
    for seed in range(6):
        setting = Setting(ALL["discrete"](), seed, LogEI(-0.5))
        acquisition = constrained(setting, seed)
        every = legal_levels(setting)
        values = acquisition.values(Points(every, np.zeros((len(every), 0))))
        assert not np.array_equal(np.argsort(values), np.argsort(values_of(setting, every)))
        found = setting.search().minimise(acquisition, setting.points, np.random.default_rng(seed))
        assert found is not None
        hits += value_of(acquisition, found) <= values.min() + 1e-9
    assert hits == 6
