"""Updates of ADMM against the formulas of liu2020 and ram2020, and the settings of ADMM."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mipcash.errors import SpaceError
from mipcash.methods.admm import AdmmSettings
from mipcash.methods.admm.augmented import Limits, Measured, unit_of
from mipcash.methods.admm.jopt import JoptSettings
from mipcash.methods.admm.settings import reward
from mipcash.methods.admm.state import THETA, AdmmState
from mipcash.optimizers.optimizer import Limit, Observation
from mipcash.optimizers.outcome import LOSS, PRESENT, Outcome, Output

METRIC = np.array([1.0, 0.5, 0.0])
"""The third coordinate is continuous."""


def state(**changes: Any) -> AdmmState:
    made = AdmmState(
        z=np.array([1, 0]), theta=np.array([0.3, 0.8, 0.2]), delta=np.array([0.5, 1.0, 0.0]), lam=np.array([0.2, -0.1, 0.0]),
        u=np.array([0.1]), mu=np.array([0.4]), rho=0.5, unit=2.0, units=np.array([3.0]), counts=np.zeros(4), rewards=np.zeros(4),
    )  # fmt: skip
    return replace(made, **changes)


def test_the_centre_and_the_target_are_those_of_algorithm_1() -> None:
    at = state()
    assert at.b == pytest.approx(at.delta - at.lam / 0.5)
    assert at.a == pytest.approx(at.theta + at.lam / 0.5)
    none = state(rho=0.0, lam=np.zeros(3))
    assert none.b.tolist() == none.delta.tolist()
    assert none.a.tolist() == none.theta.tolist()


def test_the_multipliers_and_residuals_of_an_iteration() -> None:
    delta = np.array([0.25, 1.0, 0.7])
    after = state().chosen(np.array([0, 1]), delta, np.array([0.0]), np.array([0.9]), METRIC, AdmmSettings(rho=0.5))
    assert after.lam == pytest.approx([0.2 + 0.5 * 0.05, -0.1 + 0.5 * (0.8 - 1.0), 0.0])  # eq. A17
    assert after.delta.tolist() == [0.25, 1.0, 0.0]
    assert after.primal == pytest.approx(math.sqrt(0.05**2 + 0.5 * 0.2**2))
    assert after.dual == pytest.approx(0.5 * 0.25)
    assert (after.iteration, after.phase, after.made, after.rho) == (1, THETA, 0, 0.5)
    assert after.z.tolist() == [0, 1]
    assert after.mu.tolist() == [0.9]
    assert after.outside == pytest.approx((0.9 - 0.4) / 10.0)
    # a z-min without a solution leaves the multipliers unchanged and gives no residual of the constraints
    after = state(outside=0.5).chosen(after.z, delta, np.array([0.1]), None, METRIC, AdmmSettings(rho=0.5))
    assert (after.mu.tolist(), after.outside, after.as_dict()["outside"]) == ([0.4], math.inf, None)
    pulled = state().credited(np.array([0.0, 1.0, 1.0, 0.0]), 1.0).credited(np.array([0.0, 1.0, 1.0, 0.0]), 0.0)
    assert (pulled.counts.tolist(), pulled.rewards.tolist()) == ([0, 2, 2, 0], [0, 1, 1, 0])


# -- outcome constraints ----------------------------------------------------------------------------------------


def limits(mu: float = 0.3, rho: float = 2.0, **ends: float) -> Limits:
    return Limits([Limit("g", **ends)], np.array([4.0]), rho, np.array([mu]))


def test_the_slack_is_the_minimiser_in_its_box() -> None:
    two_ends = limits(low=1.0, high=3.0)
    h = np.linspace(-1.5, 1.0, 21)[:, None]
    grid = np.linspace(0.0, 0.5, 2001)  # u in [0, (high - low) / unit]
    term = 0.5 * 2.0 * (h + grid + 0.3 / 2.0) ** 2
    measured = Measured(np.zeros(21), np.ones(21, dtype=bool), h)
    assert two_ends.slack(h)[:, 0] == pytest.approx(grid[np.argmin(term, axis=1)], abs=3e-4)
    assert two_ends.values(measured) == pytest.approx(term.min(axis=1), abs=1e-6)
    given = np.array([0.25])
    assert two_ends.values(measured, given) == pytest.approx((h[:, 0] + 0.25 + 0.15) ** 2)  # ram2020, eq. 3
    assert two_ends.multipliers(np.array([0.4]), given) == pytest.approx([0.3 + 2.0 * 0.65])  # ram2020, eq. 26
    # a constraint that is satisfied with a margin adds no penalty, and its multiplier stays 0
    kept, h = limits(mu=0.0, high=3.0), np.array([[-0.7]])
    assert kept.values(Measured(np.zeros(1), np.ones(1, dtype=bool), h)).tolist() == [0.0]
    assert kept.multipliers(h[0], kept.slack(h)[0]).tolist() == [0.0]


def test_outputs_are_measured_from_the_bound_of_their_constraint() -> None:
    told = [
        Observation({}, "done", 4.0, {"g": 5.0}),
        Observation({}, "failed", None, {"g": 0.0}),
        Observation({}, "failed"),
    ]
    above = limits(high=3.0).measured(told, 2.0)
    assert above.h[:, 0].tolist() == [0.5, -0.75, 0.5]  # an unknown output counts as the worst one
    assert above.y.tolist() == [2.0, 2.0, 2.0]
    assert above.known.tolist() == [True, False, False]
    assert limits(low=3.0).measured(told, 2.0).h[:2, 0].tolist() == [-0.5, 0.75]
    pruned = Observation({}, "done", 1.0, outcome=Outcome({LOSS: Output(PRESENT, 1.0, variance=0.5)}))
    both = Limits([], np.zeros(0), 1.0, np.zeros(0)).measured([pruned, Observation({}, "done", 2.0)], 2.0)
    assert both.variance.tolist() == [0.125, 0.0]
    assert both.known.tolist() == [True, True]
    assert both.answers.tolist() == [False, True]


def test_the_unit_is_the_range_without_the_worst_values() -> None:
    assert unit_of(np.append(np.linspace(0.0, 1.0, 21), 1e9)) == pytest.approx(0.945)
    assert unit_of(np.array([-1e308, 1e308])) > 1e307
    assert unit_of(np.array([2.0, 2.0, np.nan])) == 0.0  # not known yet


def test_rewards_of_choices() -> None:
    known = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 50.0])
    assert [reward(v, known, "rank") for v in (1.0, 3.0, 50.0)] == pytest.approx([5.5 / 6, 3.5 / 6, 0.5 / 6])
    assert [reward(v, known, 0.5) for v in (0.0, 0.1, 3.0)] == pytest.approx([1.0, 0.8, 0.0])
    assert reward(1.0, known, 10.0, unit=5.0) == pytest.approx(
        0.5
    )  # a loss of 5 after scaling; a loss of 10 earns no reward


# -- settings ---------------------------------------------------------------------------------------------------


def test_precision_is_fixed_or_grows_to_its_largest() -> None:
    assert [AdmmSettings.paper().steps(t) for t in (0, 1, 15, 99)] == [16, 32, 256, 256]
    assert [AdmmSettings(first=5, growth=0).steps(t) for t in (0, 7)] == [5, 5]
    assert [AdmmSettings(first=4, growth=2, most=9).steps(t) for t in (0, 1, 2, 3)] == [4, 6, 8, 9]


@pytest.mark.parametrize(
    "wrong",
    [
        {"theta_min": "bo"}, {"z_min": "ucb"}, {"f_hat": "median"}, {"rho": -1.0}, {"rho": math.nan}, {"first": 0}, {"growth": -1},
        {"first": 9, "most": 8}, {"prior": 0.0}, {"f_hat": "ranks"}, {"f_hat": 0.0}, {"limit_rho": 0.0}, {"unit": 0.0},
        {"tolerance": -1.0},
    ],
)  # fmt: skip
def test_wrong_settings_are_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(SpaceError, match=next(iter(reversed(wrong)))):
        AdmmSettings(**wrong)


@pytest.mark.parametrize("wrong", [{"samples": 2}, {"starts": 1.5}, {"n_initial": math.nan}, {"iterations": -1}])
def test_wrong_settings_of_jopt_are_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(SpaceError, match=next(iter(wrong))):
        JoptSettings(**wrong)
