"""Contract of every acquisition function: its gradient agrees with its values, and the mixed search improves it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from mipcash.acquisition.acquisition import Acquisition, SumAcquisition
from mipcash.acquisition.analytic import LogEI
from mipcash.acquisition.constrained import Limited, LogFeasibility
from mipcash.acquisition.feasible_first import FeasibleFirst
from mipcash.methods.cmes.entropy_search import EntropySearch, Option
from mipcash.optimizers.decoupled import LogCost
from mipcash.optimizers.pending import FantasisedEI
from mipcash.program.points import Points
from mipcash.surrogates.structured.posterior import StructuredPosterior
from tests.acquisition.checks import gradient_is_that_of_values, search_takes_it
from tests.acquisition.test_mixed_search import Setting, legal_levels, value_of, values_of
from tests.spaces import ALL

INF = math.inf
MINIMA = np.array([-1.1, -0.2, INF])


def limits(posterior: StructuredPosterior) -> list[Limited]:
    """Two outcome constraints on outputs that share the posterior of the loss."""
    return [Limited(posterior, -INF, 0.2), Limited(posterior, -0.4, 0.9)]


def kept(posterior: StructuredPosterior) -> dict[str, Limited]:
    return dict(zip("ar", limits(posterior), strict=True))


def constrained(setting: Setting) -> Acquisition:
    improvement = setting.acquisition
    return SumAcquisition(improvement, LogFeasibility(limits(improvement.posterior)))


def sample(setting: Setting) -> Acquisition:
    return setting.acquisition.posterior.sample(np.random.default_rng(1))


def per_cost(setting: Setting) -> Acquisition:
    limited = limits(setting.acquisition.posterior)
    return SumAcquisition(LogFeasibility(limited), LogCost(limited, [1.0, 2.0], 60.0))


def pending(setting: Setting) -> Acquisition:
    given = setting.acquisition.posterior.given(setting.points[:2], np.zeros(2), 0.1)
    return FantasisedEI(given, np.eye(2), np.array([-0.5, 0.0]))


def entropy(setting: Setting) -> Acquisition:
    posterior = setting.acquisition.posterior
    return EntropySearch(posterior, MINIMA, kept(posterior), [Option(frozenset("ar"))])


def entropy_of(option: Option) -> Callable[[Setting], Acquisition]:
    """Return a factory of the entropy search over one option, with noisy values; output a hides the loss."""

    def make(setting: Setting) -> Acquisition:
        posterior = setting.acquisition.posterior
        return EntropySearch(posterior, MINIMA, kept(posterior), [option], frozenset("a"), noise=True)

    return make


def penalised(setting: Setting) -> Acquisition:
    """The loss, and an output with both bounds, of which some points are below, some between and some above."""
    drawn = sample(setting)
    low, high = np.quantile(drawn.values(setting.points), [0.3, 0.6])
    return FeasibleFirst(setting.acquisition, [(Limited(setting.acquisition.posterior, low, high), drawn)])


MADE = {
    "penalised": penalised,
    "log-ei": lambda setting: setting.acquisition,
    "constrained": constrained,
    "sample": sample,
    "per cost": per_cost,
    "pending": pending,
    "entropy": entropy,
    "entropy of all outputs": entropy_of(Option(frozenset("ar"))),
    "entropy of an output": entropy_of(Option(frozenset("r"), False, -1.0)),
    "entropy of the loss": entropy_of(Option(frozenset(), True, -0.5)),
}


@pytest.mark.parametrize("space", ["conv_net", "bound_numbers"])
def test_gradients_agree_with_finite_differences(space: str) -> None:
    setting = Setting(ALL[space](), 2, LogEI(-0.5))
    for name, make in MADE.items():
        gradient_is_that_of_values(make(setting), setting, np.random.default_rng(0), large=name == "penalised")


@pytest.mark.parametrize("space", list(ALL))
def test_the_mixed_search_improves_every_acquisition_function(space: str) -> None:
    setting = Setting(ALL[space](), 1, LogEI(-0.5))
    for make in MADE.values() if space == "discrete" else (constrained, sample):
        search_takes_it(make(setting), setting)


def test_the_mixed_search_finds_the_optimum_of_a_small_discrete_space() -> None:
    for seed in range(5):
        setting = Setting(ALL["discrete"](), seed, LogEI(-0.5))
        acquisition, every = constrained(setting), legal_levels(setting)
        values = acquisition.values(Points(every, np.zeros((len(every), 0))))
        assert not np.array_equal(np.argsort(values), np.argsort(values_of(setting, every)))
        found = setting.search().minimise(acquisition, setting.points, np.random.default_rng(seed))
        assert found is not None
        assert value_of(acquisition, found) <= values.min() + 1e-9
