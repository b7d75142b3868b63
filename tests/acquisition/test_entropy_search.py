"""Outputs that are not evaluated and losses that a violated constraint hides, against entropies by draws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from mipcash.acquisition.analytic import LogEI
from mipcash.acquisition.constrained import Interval, Kept
from mipcash.methods.cmes.constrained_entropy import ConstrainedEntropy
from mipcash.methods.cmes.entropy_search import EntropySearch, Option
from mipcash.program.forms import Vector
from mipcash.program.points import Points
from tests.acquisition.checks import gradient_is_that_of_values
from tests.acquisition.test_mixed_search import Setting
from tests.spaces import ALL

INF = math.inf
FAR = Points(np.zeros((1, 0), dtype=np.int64), np.zeros((1, 0)))


class Fixed:
    """A posterior of one mean and deviation everywhere."""

    fitted_noise = 0.0

    def __init__(self, mean: float, sd: float) -> None:
        self.mean, self.sd = mean, sd

    def predict(self, points: Points) -> tuple[Vector, Vector]:
        return np.full(len(points), self.mean), np.full(len(points), self.sd)


def told(gamma: float, limits: dict[str, Any], option: Option, hiding: frozenset[str] = frozenset()) -> float:
    """By the closed form, of a standard normal loss."""
    search = EntropySearch(Fixed(0.0, 1.0), np.array([gamma]), limits, [option], hiding)  # type: ignore[arg-type]
    return math.exp(-float(search.values(FAR)[0]))


def by_draws(gamma: float, bounds: list[float], u: float, loss: bool) -> float:
    """H[E] - H[E | y_*] with kappa = 1 - [legal, below y_*] u, by draws.

    Args:
        gamma: y_*, of a standard normal loss.
        bounds: upper bounds of standard normal outputs that are evaluated.
        u: the probability that those which are not evaluated are legal, the loss among them where it is not.
    """
    n = np.random.default_rng(1).normal(size=(len(bounds) + loss, 1_000_000))
    inside = np.ones(n.shape[1], dtype=bool)
    for row, bound in zip(n, [*bounds, gamma][: len(n)], strict=True):
        inside &= row <= bound
    surprises = 0.5 * np.sum(n**2, axis=0)
    kappa = np.where(inside, 1.0 - u, 1.0)
    after = np.mean(kappa * (surprises - np.log(np.where(kappa > 0.0, kappa, 1.0)))) / kappa.mean()
    return float(surprises.mean() - after - math.log(kappa.mean()))


@pytest.mark.parametrize("gamma", [-1.0, 0.3])
@pytest.mark.parametrize(
    ("asked", "loss"),
    [({"r", "s"}, True), ({"r"}, True), ({"r", "s"}, False), ({"r"}, False), (set(), True)],
)
def test_it_is_the_entropy_difference_of_what_is_evaluated(gamma: float, asked: set[str], loss: bool) -> None:
    bounds = {"r": 0.4, "s": -0.2}
    limits = {name: Kept(Fixed(0.0, 1.0), Interval(-INF, bound)) for name, bound in bounds.items()}  # type: ignore[arg-type]
    u = math.prod(stats.norm.cdf(bounds[n]) for n in limits if n not in asked) * (
        1.0 if loss else stats.norm.cdf(gamma)
    )
    found = told(gamma, limits, Option(frozenset(asked), loss))
    expected = by_draws(gamma, [bounds[n] for n in bounds if n in asked], u, loss)
    if expected > 0.01:
        assert found == pytest.approx(expected, rel=0.03, abs=3e-3)
    else:  # the share that is always counted is all that is left
        assert 0.0 < found < 0.02


def test_a_loss_that_may_be_hidden_is_told_with_the_probability_that_it_is_not() -> None:
    """A.6: with the probability that the constraint is satisfied what A.3 says, else what A.5 says of the output alone."""
    limits = {"r": Kept(Fixed(0.0, 1.0), Interval(-INF, 0.4))}  # type: ignore[arg-type]
    both, alone = (told(-0.6, limits, Option(frozenset("r"), loss)) for loss in (True, False))
    p = stats.norm.cdf(0.4)
    mixed = told(-0.6, limits, Option(frozenset("r")), frozenset("r"))
    assert mixed == pytest.approx(p * both + (1.0 - p) * alone)
    assert alone < mixed < both


def test_costs_divide_what_is_told() -> None:
    limits = {"r": Kept(Fixed(0.0, 1.0), Interval(-INF, 0.4))}  # type: ignore[arg-type]
    cheap, dear = Option(frozenset("r"), False, math.log(0.01)), Option(frozenset("r"), True, math.log(5.0))
    search = EntropySearch(Fixed(0.0, 1.0), np.array([1.5]), limits, [dear, cheap])  # type: ignore[arg-type]
    assert search.ranked(FAR).tolist() == [1, 0]
    free = EntropySearch(Fixed(0.0, 1.0), np.array([1.5]), limits, [Option(o.outputs, o.loss) for o in (dear, cheap)])  # type: ignore[arg-type]
    assert free.ranked(FAR).tolist() == [0, 1]
    ratio = told(1.5, limits, dear) / told(1.5, limits, Option(frozenset("r"), True))
    assert ratio == pytest.approx(0.2)


def setting_of(name: str) -> tuple[Setting, EntropySearch]:
    setting = Setting(ALL[name](), 3, LogEI(-0.5))
    posterior = setting.acquisition.posterior
    limits = {"r": Kept(posterior, Interval(-0.2, 0.9)), "a": Kept(posterior, Interval(-INF, 0.3))}
    options = [Option(frozenset("ra")), Option(frozenset("r"), False, -1.0), Option(frozenset(), True, -0.5)]
    return setting, EntropySearch(posterior, np.array([-1.2, -0.4, INF]), limits, options, frozenset("a"), True)


@pytest.mark.parametrize("name", ["conv_net", "bound_numbers", "continuous"])
def test_its_gradient_is_that_of_its_values(name: str) -> None:
    setting, search = setting_of(name)
    for option in search.options:
        alone = EntropySearch(search.loss, search.minima, search.limits, [option], search.hiding, search.noise)
        gradient_is_that_of_values(alone, setting, np.random.default_rng(0))


def test_of_values_alone_it_is_the_closed_form_of_the_usual_case() -> None:
    setting = Setting(ALL["conv_net"](), 3, LogEI(-0.5))
    posterior, minima = setting.acquisition.posterior, np.array([-1.2, -0.4])
    limits = {"r": Kept(posterior, Interval(-INF, 0.3)), "s": Kept(posterior, Interval(-0.5, 1.0))}
    for noise in (False, True):
        usual = ConstrainedEntropy(posterior, minima, list(limits.values()), noise).values(setting.points)
        found = EntropySearch(posterior, minima, limits, [Option(frozenset("rs"))], noise=noise).values(setting.points)
        assert found == pytest.approx(usual, rel=1e-9)


@pytest.mark.parametrize("mu", [-1e7, -40.0, 40.0, 1e7])
@pytest.mark.parametrize("gamma", [-1e6, 30.0, INF])
@pytest.mark.parametrize("count", [1, 5])
def test_it_is_finite_wherever_a_search_may_look(mu: float, gamma: float, count: int) -> None:
    limits: dict[str, Any] = {f"a{k}": Kept(Fixed(mu, 0.5), Interval(-INF, 0.0)) for k in range(count)}  # type: ignore[arg-type]
    limits["r"] = Kept(Fixed(-mu, 0.1), Interval(-INF, 0.0))  # type: ignore[arg-type]
    every = frozenset(limits)
    options = [
        Option(every),
        Option(frozenset(["a0"]), False),
        Option(frozenset(), True),
        Option(frozenset("r"), False),
    ]
    for hiding in (frozenset[str](), frozenset(["a0"])):
        search = EntropySearch(Fixed(0.0, 1.0), np.array([gamma]), limits, options, hiding)  # type: ignore[arg-type]
        assert np.isfinite(search.scores(FAR)).all()
