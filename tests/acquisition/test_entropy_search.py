"""Answers, outputs that are not evaluated, losses that a broken limit hides: against entropies by draws, sums and quadrature."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from mipcash.acquisition.analytic import LogEI
from mipcash.acquisition.binary_entropy import Answers, binary_share, unseen
from mipcash.acquisition.constrained import Interval, Kept, Truncation
from mipcash.acquisition.constrained_entropy import FLOOR, ConstrainedEntropy, Share, log_gain
from mipcash.acquisition.entropy_search import MOST, Answered, EntropySearch, Option, surprise
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


def at_length(gamma: float, real: list[float], answers: list[Answers], u: float, loss: bool) -> float:
    """H[E] - H[E | y_*] with kappa = 1 - [legal, below y_*] x(z): by draws of real outputs, and sums over the answers.

    Args:
        gamma: y_*, of a standard normal loss.
        real: upper limits of standard normal outputs that are evaluated.
        u: the probability that those which are not evaluated are legal, the loss among them where it is not.
    """
    n = np.random.default_rng(1).normal(size=(len(real) + loss, 1_000_000))
    inside = np.ones(n.shape[1], dtype=bool)
    for row, bound in zip(n, [*real, gamma][-len(n) :] if len(n) else [], strict=True):
        inside &= row <= bound
    surprises = 0.5 * np.sum(n**2, axis=0)
    before, after, norm = surprises.mean(), 0.0, 0.0
    for signs in product((0, 1), repeat=len(answers)):
        q = math.exp(sum(float(a.log_q[z, 0]) for a, z in zip(answers, signs, strict=True)))
        x = u * math.exp(sum(float(a.log_f[z, 0]) for a, z in zip(answers, signs, strict=True)))
        kappa = np.where(inside, 1.0 - x, 1.0)
        norm += q * kappa.mean()
        before -= q * math.log(q)
        after += q * np.mean(kappa * (surprises - math.log(q) - np.log(np.where(kappa > 0.0, kappa, 1.0))))
    return before - (after / norm + math.log(norm))


def answers(mu: float, sd: float, delta: float) -> Answers:
    return Answers(np.array([mu]), np.array([sd]), delta)


A, B = (-0.4, 0.7, 0.0), (0.8, 1.5, 0.5)


@pytest.mark.parametrize("gamma", [-1.0, 0.3])
@pytest.mark.parametrize(
    ("asked", "loss"),
    [
        ({"r", "a", "b"}, True),  # A.3 with several limits of either kind
        ({"a", "b"}, True),
        ({"a"}, True),
        ({"a"}, False),  # A.5: an answer alone
        ({"a", "b"}, False),
        ({"r"}, False),  # A.5: a value alone
        (set(), True),  # A.5: the loss alone
    ],
)
def test_it_is_the_entropy_difference_of_what_is_evaluated(gamma: float, asked: set[str], loss: bool) -> None:
    limits = {
        "r": Kept(Fixed(0.0, 1.0), Interval(-INF, 0.4)),  # type: ignore[arg-type]
        "a": Answered(Fixed(A[0] / 2, A[1] / 2), 2.0, A[2]),  # type: ignore[arg-type]
        "b": Answered(Fixed(B[0], B[1]), 1.0, B[2]),  # type: ignore[arg-type]
    }
    kept = {"r": stats.norm.cdf(0.4), "a": stats.norm.cdf(-A[0] / A[1]), "b": stats.norm.cdf((B[2] - B[0]) / B[1])}
    u = math.prod(kept[name] for name in limits if name not in asked) * (1.0 if loss else stats.norm.cdf(gamma))
    real = [0.4] if "r" in asked else []
    found = told(gamma, limits, Option(frozenset(asked), loss))
    expected = at_length(gamma, real, [answers(*at) for name, at in (("a", A), ("b", B)) if name in asked], u, loss)
    # where it is negative, or next to it, the share that is always counted is all that is left
    if expected > 0.01:
        assert found == pytest.approx(expected, rel=0.03, abs=3e-3)
    else:
        assert 0.0 < found < 0.02


@pytest.mark.parametrize("bound", [-0.5, 0.9])
def test_an_answer_alone_by_the_formula_of_the_paper(bound: float) -> None:
    """A.5, the last equation, and the same by its first line."""
    a, z_y = answers(-0.2, 1.1, bound), stats.norm.cdf(-0.3)
    q, f = np.exp(a.log_q[:, 0]), np.exp(a.log_f[:, 0])
    kappa, z_c = 1.0 - z_y * f, float(q @ f)
    z = 1.0 - z_y * z_c
    given = q * kappa / z
    first = -np.sum(q * np.log(q)) + np.sum(given * np.log(given))
    last = -math.log(z) + np.sum(q * (kappa * np.log(kappa) - z_y * (f - z_c) * np.log(q))) / z
    assert first == pytest.approx(last)
    limits = {"a": Answered(Fixed(-0.2, 1.1), 1.0, bound)}  # type: ignore[arg-type]
    assert told(-0.3, limits, Option(frozenset("a"), False)) == pytest.approx(
        max(first, -FLOOR * math.log(z)), rel=1e-6
    )


def test_it_agrees_with_the_shares_of_one_answer_and_of_nothing_seen() -> None:
    share = binary_share(np.array([A[0]]), np.array([A[1]]), A[2])
    loss = Share.of(Truncation.below(np.array([-0.6])), np.ones(1), np.ones(1))
    expected = math.exp(log_gain(loss.log + share.log, loss.spread + share.spread)[0][0])
    limits = {"a": Answered(Fixed(A[0], A[1]), 1.0, A[2])}  # type: ignore[arg-type]
    assert told(-0.6, limits, Option(frozenset("a"))) == pytest.approx(expected, rel=1e-9)
    log = np.array([-3.0, -0.5, -1e-9, -700.0])
    assert 2.0 * surprise(log, []) == pytest.approx(unseen(log), rel=1e-6, abs=1e-12)


def test_a_loss_that_may_be_hidden_is_told_with_the_probability_that_it_is_not() -> None:
    """A.6: Q(-1) times what A.3 says, and Q(+1) times what A.5 says of the answer alone."""
    limits = {"a": Answered(Fixed(A[0], A[1]), 1.0, A[2])}  # type: ignore[arg-type]
    both, alone = (told(-0.6, limits, Option(frozenset("a"), loss)) for loss in (True, False))
    q = np.exp(answers(*A).log_q[:, 0])
    mixed = told(-0.6, limits, Option(frozenset("a")), frozenset("a"))
    assert mixed == pytest.approx(q[1] * both + q[0] * alone)
    assert alone < mixed < both


def test_a_hidden_loss_that_is_asked_for_alone_may_tell_nothing() -> None:
    limits = {"a": Answered(Fixed(A[0], A[1]), 1.0, A[2])}  # type: ignore[arg-type]
    open_, hidden = (told(-0.6, limits, Option(frozenset()), frozenset(h)) for h in ("", "a"))
    assert hidden == pytest.approx(open_ * math.exp(answers(*A).log_q[1, 0]))


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
    limits: dict[str, Kept | Answered] = {
        "r": Kept(posterior, Interval(-0.2, 0.9)),
        "a": Answered(posterior, 4.0, 0.3),
    }
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
@pytest.mark.parametrize("count", [1, 5, MOST + 3])
def test_it_is_finite_wherever_a_search_may_look(mu: float, gamma: float, count: int) -> None:
    limits: dict[str, Any] = {f"a{k}": Answered(Fixed(mu, 0.5), 3.0, 0.0) for k in range(count)}  # type: ignore[arg-type]
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


def test_the_surprise_of_an_answer_and_the_loss_by_quadrature() -> None:
    """G of one answer beside an output that is not evaluated: the integral that A.3 and A.5 share."""
    a, u = answers(*B), 0.6
    q, f = np.exp(a.log_q[:, 0]), np.exp(a.log_f[:, 0])

    def part(t: float) -> float:  # -log(1 - x) = int_0^x dt / (1 - t)
        return float(np.sum(q * (1.0 - u * f) * np.where(t < u * f, 1.0 / (1.0 - t), 0.0)))

    integral = quad(part, 0.0, u, points=sorted(u * f), limit=200)[0]
    assert surprise(np.array([math.log(u)]), [a])[0] == pytest.approx(integral / (u * float(q @ f)), rel=1e-6)
