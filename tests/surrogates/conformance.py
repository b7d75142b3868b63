"""Conformance tests of surrogates. A test class inherits :class:`Conformance` and creates its surrogate."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from functools import cache
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.program.points import Points
from mipcash.program.program import BinaryProgram
from mipcash.space.compiled import compiled
from mipcash.space.domain import Domain
from mipcash.surrogates.protocols import Posterior, Surrogate
from tests.spaces import alternatives, bound_numbers, conv_net, discrete, loss


def nested() -> mc.Space:
    """Space with a number under two conditions (in no pair), one under one condition, and three without conditions."""
    space = mc.Space("nested")
    kind = space.categorical("kind", ["a", "b", "c"])
    depth = space.integer("depth", 1, 4, when=kind.is_("a", "b"))
    space.real("rate", 0, 1)
    space.real("decay", 1e-3, 1, log=True)
    space.integer("wide", 1, 500)
    space.real("one", 0, 1, when=kind["a"])
    space.real("two", 0, 1, when=[kind["a"], depth.is_(2)])
    return space


MADE = (nested, alternatives, conv_net, discrete, bound_numbers)
SPACES = {space.__name__: space for space in MADE}
T, LEFT = 16, 8
"""Number of observed points, and of further points."""


class Observed:
    """Legal points of a space, of which the first T have losses."""

    def __init__(self, name: str) -> None:
        self.name = name
        space: mc.Space = SPACES[name]()
        self.program: BinaryProgram = compiled(space).program
        self.scale = Domain.of(space).scale
        configs = space.sample(T + LEFT, 3)
        levels = np.array([self.program.encode(c) for c in configs]).reshape(len(configs), len(self.program.groups))
        self.every = Points(levels, self.scale.units(configs))
        self.points, self.new = self.every[:T], self.every[T:]
        rng = np.random.default_rng(7)
        bare = np.array([0.0 if name == "nested" else loss(c) for c in configs[:T]])
        self.values = bare + rng.normal(size=T)

    def binaries(self, points: Points) -> np.ndarray:
        return points.one_hot(self.program)


@cache
def observed_in(name: str) -> Observed:
    """Return the points of a space by its name, drawn once."""
    return Observed(name)


def rng_of(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


class Sampling(ABC):
    """Tests of predictions, samples and conditioning over the spaces that a subclass is parametrized with.

    ``draws`` samples are compared with moments. Mixtures are not ``gaussian``. The covariance of samples may be ``inflated``.
    """

    draws = 120
    gaussian = True
    inflated = True

    @abstractmethod
    def fit(
        self, observed: Observed, t: int, state: dict[str, Any], rng: np.random.Generator, noise: Any = 0.0
    ) -> tuple[Any, dict[str, Any]]:
        """Fit the first t observations."""

    @abstractmethod
    def told(self, posterior: Any, observed: Observed) -> float:
        """Return the first observation on the scale of f."""

    def sampled(self, posterior: Any, points: Points) -> tuple[np.ndarray, np.ndarray]:
        """Return means and deviations of the sampled function: f, or the part of f that has a quadratic form."""
        moments: tuple[np.ndarray, np.ndarray] = posterior.predict(points)
        return moments

    def fitted(self, observed: Observed, noise: Any = 0.0) -> Any:
        if np.ndim(noise) == 0 and noise == 0.0:
            return _plain(type(self), observed.name)
        return self.fit(observed, T, {}, rng_of(), noise)[0]

    def test_samples_have_the_predicted_moments(self, name: str) -> None:
        observed = observed_in(name)
        posterior, rng = self.fitted(observed), rng_of(1)
        mean, deviation = self.sampled(posterior, observed.new)
        draws = np.array([posterior.sample(rng).values(observed.new) for _ in range(self.draws)])
        spread = draws.std(axis=0)
        np.testing.assert_allclose(draws.mean(axis=0), mean, atol=6 * spread.max() / np.sqrt(self.draws))
        np.testing.assert_allclose(spread, deviation, rtol=0.3, atol=0.02)
        if self.inflated:
            none, half, whole = (posterior.sample(rng_of(2), i).values(observed.new) for i in (0.0, 0.25, 1.0))
            np.testing.assert_allclose(none, mean, atol=1e-8)
            np.testing.assert_allclose(half - mean, 0.5 * (whole - mean), atol=1e-7)

    def test_functions_agree_with_their_forms_and_sections(self, name: str) -> None:
        observed = observed_in(name)
        posterior = self.fitted(observed)
        n = observed.program.n
        for f in map(posterior.sample, map(rng_of, (3, 4))):
            values = f.values(observed.new)
            for z, u, value in zip(observed.binaries(observed.new), observed.new.units, values, strict=True):
                assert f.value(z, u) == pytest.approx(value, abs=1e-8)
                assert f.form_at(u).value(np.pad(z, (0, n - len(z)))) == pytest.approx(value, abs=1e-8)
                section = f.section(z)
                assert section(u)[0] == pytest.approx(value, abs=1e-8)
                _agrees(lambda v, s=section: s(v)[0], section(u)[1], u)

    def test_conditioning_moves_the_mean_to_the_value_and_lowers_the_deviation(self, name: str) -> None:
        observed = observed_in(name)
        posterior = self.fitted(observed)
        pending = observed.new[:3]
        mean, deviation = posterior.predict(pending)
        believed = posterior.given(pending, mean)
        after, less = believed.predict(observed.every)
        assert (less[T : T + 3] < 0.999 * deviation + 1e-6).all()
        if self.gaussian:  # conditioning on the mean changes no mean and increases no deviation
            np.testing.assert_allclose(after, posterior.predict(observed.every)[0], atol=1e-5)
            assert (less <= posterior.predict(observed.every)[1] + 1e-6).all()
        lower = posterior.given(pending[:1], mean[:1] - deviation[:1]).predict(pending[:1])[0]
        assert lower[0] < mean[0]

    def test_conditioning_twice_is_conditioning_once_and_values_with_huge_noise_change_nothing(self, name: str) -> None:
        observed = observed_in(name)
        posterior, values = self.fitted(observed), np.array([0.3, -0.2, 0.5])
        once = posterior.given(observed.new[:3], values, np.array([0.0, 0.1, 0.0]))
        twice = posterior.given(observed.new[:2], values[:2], np.array([0.0, 0.1])).given(observed.new[2:3], values[2:])
        np.testing.assert_allclose(once.predict(observed.every), twice.predict(observed.every), atol=1e-5)
        told = posterior.given(observed.new[:2], np.array([5.0, -5.0]), 1e12)
        np.testing.assert_allclose(told.predict(observed.every), posterior.predict(observed.every), atol=1e-4)

    def test_noise_is_one_number_or_a_vector_and_a_noisy_observation_counts_less(self, name: str) -> None:
        observed = observed_in(name)
        one, each = self.fitted(observed, 0.3), self.fitted(observed, np.full(T, 0.3))
        np.testing.assert_allclose(one.predict(observed.every), each.predict(observed.every), rtol=1e-6, atol=1e-8)
        noise = np.zeros(T)
        quiet, zeros = self.fitted(observed), self.fitted(observed, noise)
        np.testing.assert_array_equal(quiet.predict(observed.every), zeros.predict(observed.every))
        noise[0] = 1e10 * np.var(observed.values)
        noisy = self.fitted(observed, noise)
        miss = [abs(p.predict(observed.points[:1])[0][0] - self.told(p, observed)) for p in (quiet, noisy)]
        assert miss[1] > miss[0] or not self.gaussian  # a different chain has different scales
        assert np.isfinite(noisy.sample(rng_of(5)).values(observed.every)).all()

    def test_the_state_goes_through_json_and_the_next_fit_takes_it(self, name: str) -> None:
        observed = observed_in(name)
        state: dict[str, Any] = {}
        for t in (T - 2, T - 1, T):
            _, plain = self.fit(observed, t, state, rng_of(t))
            again, through = self.fit(observed, t, json.loads(json.dumps(state)), rng_of(t))
            assert plain == through
            state = plain
        assert np.isfinite(again.predict(observed.new)).all()


class Conformance(Sampling):
    """Tests of a surrogate as the protocol describes it."""

    @abstractmethod
    def made(self, observed: Observed) -> Surrogate[Any, Any]:
        """Return the surrogate over the space of the observations."""

    def fit(
        self, observed: Observed, t: int, state: dict[str, Any], rng: np.random.Generator, noise: Any = 0.0
    ) -> tuple[Any, dict[str, Any]]:
        surrogate = self.made(observed)
        return surrogate.fit(surrogate.prepare(observed.points[:t]), observed.values[:t], state, rng, noise)

    def told(self, posterior: Any, observed: Observed) -> float:
        return float(posterior.scaled(observed.values)[0])

    def test_predictions_fit_the_observations_and_convert_back_to_losses(self, name: str) -> None:
        observed = observed_in(name)
        posterior: Posterior = self.fitted(observed)
        mean, deviation = posterior.predict(observed.every)
        assert mean.shape == deviation.shape == (T + LEFT,)
        assert np.isfinite(mean).all()
        assert (deviation > 0.0).all()
        np.testing.assert_allclose(posterior.fitted, mean[:T], atol=1e-5)
        scaled = posterior.scaled(np.sort(observed.values))
        assert (np.diff(scaled) > 0.0).all()
        back = [posterior.mean().loss(float(v)) for v in scaled]
        np.testing.assert_allclose(back, np.sort(observed.values), rtol=1e-9, atol=1e-9)
        assert posterior.fitted_noise > 0.0

    def test_moments_at_fixed_levels_are_predictions_with_their_gradients(self, name: str) -> None:
        observed = observed_in(name)
        posterior = self.fitted(observed)
        predicted = posterior.predict(observed.new)
        for k, (z, u) in enumerate(zip(observed.binaries(observed.new), observed.new.units, strict=True)):
            section = posterior.section(z)
            mean, deviation, by_mean, by_deviation = section(u)
            assert mean == pytest.approx(predicted[0][k], abs=1e-8)
            assert deviation == pytest.approx(predicted[1][k], abs=1e-6)
            _agrees(lambda v, s=section: s(v)[0], by_mean, u)
            _agrees(lambda v, s=section: s(v)[1], by_deviation, u)

    def test_outputs_share_the_preparation_of_the_points(self, name: str) -> None:
        observed = observed_in(name)
        surrogate, shared = self.made(observed), self.made(observed).prepare(observed.points)
        assert len(shared) == T
        for values in (observed.values, np.flip(observed.values) ** 3):
            alone, state = surrogate.fit(surrogate.prepare(observed.points), values, {}, rng_of())
            together, same = surrogate.fit(shared, values, {}, rng_of())
            assert state == same
            np.testing.assert_array_equal(alone.predict(observed.every), together.predict(observed.every))
        rows = np.array([0, 2, 3, 5, 7, 8, 11])
        part, apart = shared.part(rows), surrogate.prepare(observed.points[rows])
        assert shared.part(rows) is part
        predicted = [
            surrogate.fit(p, observed.values[rows], {}, rng_of())[0].predict(observed.new) for p in (part, apart)
        ]
        np.testing.assert_array_equal(*predicted)


def _agrees(f: Any, gradient: np.ndarray, u: np.ndarray, step: float = 1e-6) -> None:
    differences = [(f(u + e) - f(u - e)) / (2 * step) for e in step * np.eye(len(u))]
    np.testing.assert_allclose(gradient, differences, rtol=2e-3, atol=2e-4)


@cache
def _plain(kind: type[Sampling], name: str) -> Any:
    """Return the fit without given noise, which most tests use."""
    return kind().fit(observed_in(name), T, {}, rng_of())[0]
