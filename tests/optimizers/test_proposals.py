"""Proposals in wide spaces, in restricted domains and with numbers tied to levels, and the solvers that prove them."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import mipcash as mc
from mipcash.methods.admm.legal import Projection
from mipcash.methods.admm.variables import Variables
from mipcash.optimizers.optimizer import Observation, Proposal, Request
from mipcash.optimizers.outcome import DONE
from mipcash.optimizers.registry import make_optimizer
from mipcash.space.domain import Domain
from mipcash.space.solution import LOCAL_SEARCH
from mipcash.study.records.encoding import decode_solution, encode_solution
from tests.proxies import proxy
from tests.spaces import ALL

# -- wide spaces -------------------------------------------------------------------------------------------------------


def levels() -> mc.Space:
    """Space with a categorical and an ordinal of many levels, many reals, and rules over them."""
    space = mc.Space("levels")
    kind = space.categorical("kind", [f"kind {k}" for k in range(2000)])
    size = space.ordinal("size", list(range(1200)))
    x = [space.real(f"x{k}", 0, 1) for k in range(20)]
    space.rule("room", sum(x) <= 10)
    space.rule("the first is dear", sum(x[:5]) + 2 * kind["kind 0"] <= 4)
    space.rule("not both", kind["kind 1"] + size.is_(0) <= 1)
    return space


def binaries() -> mc.Space:
    """Space with many categoricals and no numbers, so that earlier proposals are excluded by their levels."""
    space = mc.Space("binaries")
    for k in range(150):
        space.categorical(f"c{k}", list("abcd"))
    return space


@pytest.mark.parametrize("declared", [levels, binaries])
def test_proposals_of_a_wide_space_are_legal_and_new(declared: Any) -> None:
    space = declared()
    optimizer, objective = make_optimizer("hybrid", space), proxy(space)
    history, found = list[Observation](), list[Proposal]()
    for k in range(7):
        state = dict(found[-1].state) if found else {}
        p = optimizer.ask(Request(history, np.random.default_rng(k), state))
        assert space.is_legal(p.config)
        assert p.config not in [o.config for o in history]
        assert p.solution is not None
        assert p.solution.config == p.config
        found.append(p)
        history.append(Observation(p.config, DONE, objective(p.config)))
    assert [p.origin for p in found].count("initial design") == 6
    for p in found[6:]:
        assert p.solution is not None
        assert (p.solution.status, p.solution.bound, p.solution.solver) == ("feasible", -math.inf, LOCAL_SEARCH)
        assert "wide" in p.trace["certificate"]


# -- restricted domains ------------------------------------------------------------------------------------------------


def test_values_close_to_a_fixed_number_are_replaced_by_it() -> None:
    part = Domain.of(ALL["conv_net"]()).restricted({"lr": 1e-3})
    (config,) = part.sample(1, np.random.default_rng(0))
    beside = config | {"lr": 0.0010000000000000002}
    assert part.nearest(beside)["lr"] == 1e-3
    variables = Variables.of(part)
    points = part.encode([beside])
    projected = Projection(part, variables)(variables.z(points)[0], variables.theta(points)[0])
    assert projected is not None
    assert projected["lr"] == 1e-3


# -- numbers that rules tie to levels ----------------------------------------------------------------------------------

NAMES = "ABCDEF"
STRENGTH = np.array([1.0, 1.4, 0.8, 1.1, 1.6, 0.3])


def mixture() -> mc.Space:
    """Space of shares that sum to one. At most three of them are used, each with at least a tenth."""
    space = mc.Space("mixture")
    share = [space.real(n, 0.0, 1.0) for n in NAMES]
    used = [space.integer(f"uses {n}", 0, 1) for n in NAMES]
    space.rule("whole", sum(share) == 1)
    space.rule("few", sum(used) <= 3)
    for n, s, u in zip(NAMES, share, used, strict=True):
        space.rule(f"{n} only if used", s <= u)
        space.rule(f"a tenth of {n}", s >= 0.1 * u)
    return space


def strength(config: dict[str, Any]) -> float:
    s = np.array([config[n] for n in NAMES])
    return -float(STRENGTH @ s + 4.0 * s[1] * s[4] + 2.5 * s[4] * s[5])


def test_levels_move_together_with_the_numbers_that_are_tied_to_them() -> None:
    """B and E are the best pair, with -2.5025. The search once kept the components of its first good mixture."""
    result = mc.minimize(strength, mixture(), 24, seed=0, progress=False)
    assert result.value < -2.5
    assert len({tuple(n for n in NAMES if t.config[n] > 0) for t in result.history[6:]}) > 1


def test_components_of_a_mixture_change_where_no_move_is_legal() -> None:
    """At given shares no component can be exchanged. The search once kept the components of the design, with losses up to 1."""
    space, best = mc.Space("conditional mixture"), np.array([0.0, 0.5, 0.0, 0.0, 0.3, 0.0, 0.2, 0.0])
    used = [space.categorical(f"use {k}", ["no", "yes"]) for k in range(8)]
    share = [space.real(f"share {k}", 0.1, 1.0, when=u["yes"]) for k, u in enumerate(used)]
    space.rule("whole", sum(share) == 1)
    space.rule("few", sum(u["yes"] for u in used) <= 3)

    def distance(config: Any) -> float:
        return float(np.abs(np.array([config.get(f"share {k}", 0.0) for k in range(8)]) - best).sum())

    assert mc.minimize(distance, space, 24, seed=1, progress=False).value < 0.2


@pytest.mark.parametrize(
    ("n", "real", "seed", "within"), [(5, False, 0, 0.0), (5, True, 0, 0.5), (12, False, 1, 180.0)]
)
def test_the_model_is_used_where_no_move_is_legal(n: int, real: bool, seed: int, within: float) -> None:
    """In 0/1 assignments four binaries move at once. With twelve rows the space is wide."""
    space, cost = mc.Space("assignment"), np.random.default_rng(1).integers(0, 100, (n, n))
    x = [[space.integer(f"x{i}_{j}", 0, 1) for j in range(n)] for i in range(n)]
    for k in range(n):
        space.rule(f"row {k}", sum(x[k]) == 1)
        space.rule(f"column {k}", sum(row[k] for row in x) == 1)
    if real:
        space.real("u", 0, 1)

    def total(config: Any) -> float:
        costs = sum(int(cost[i, j]) * config[f"x{i}_{j}"] for i in range(n) for j in range(n))
        return float(costs + 20 * (config.get("u", 0.3) - 0.3) ** 2)

    method = mc.Method("hybrid", solver="highs")
    result = mc.minimize(total, space, 24, seed=seed, optimizer=method, progress=False)
    assert [t.origin for t in result.history[6:]] == ["log-ei"] * 18
    assert result.value <= cost[linear_sum_assignment(cost)].sum() + within


# -- solvers of certificates ------------------------------------------------------------------------------------------

PROVERS = {"enumeration", "highs"}


def small() -> mc.Space:
    space = mc.Space("small")
    a, b = space.integer("a", 1, 4), space.ordinal("b", [1, 2, 4])
    space.categorical("c", ["x", "y"])
    space.rule("r", a * b <= 8)
    space.real("lr", 0, 1)
    return space


def product(config: dict[str, Any]) -> float:
    return config["a"] * config["b"] + (config["c"] == "x") + config["lr"]


@pytest.mark.parametrize(
    ("optimizer", "settings", "value"),
    [
        ("hybrid", None, "structured part of the predicted loss"),
        ("hybrid", {"acquisition": "thompson"}, "sampled loss"),
        ("mivabo", {"n_initial": 4}, "sampled loss"),
    ],
)
def test_certificates_name_their_solver(optimizer: str, settings: Any, value: str) -> None:
    result = mc.minimize(product, small(), 10, optimizer=mc.Method(optimizer, settings=settings), progress=False)
    for trial in result.history:
        proof = trial.proof
        assert proof is not None
        assert proof.solver in PROVERS if proof.bound > float("-inf") else proof.solver == LOCAL_SEARCH
        expected = "negated coverage of values" if trial.origin == "initial design" else value
        assert proof.of == expected
        assert re.match(rf"(optimal|feasible), {expected} [-\d]", str(proof))
        assert expected in proof._repr_html_()
    assert {t.proof.solver for t in result.history if t.proof} <= {*PROVERS, LOCAL_SEARCH}


def test_a_certificate_is_decoded_as_it_was_encoded() -> None:
    space = small()
    assert str(space.optimum(space["a"] * space["b"])).startswith("optimal, value 1, proven by enumeration")
    proof = mc.minimize(product, space, 1, progress=False).history[0].proof
    assert decode_solution(space, encode_solution(space, proof)) == proof


# -- plateaus -----------------------------------------------------------------------------------------------------------


def solver_tuning() -> mc.Space:
    space = mc.Space("tuning")
    space.categorical("algorithm", list("abcd"))
    space.real("tolerance", 1e-9, 1e-1, log=True)
    space.integer("restart", 10, 5000, log=True)
    space.integer("cuts", 0, 40)
    return space


def seconds(config: dict[str, Any]) -> float:
    """Return a run time with a limit of 600 s, which more than nine in ten configurations reach."""
    digits = math.log10(config["tolerance"]) - {"a": -4, "b": -6, "c": -3, "d": -5}[config["algorithm"]]
    x = 2 * digits**2 + 2 * (math.log10(config["restart"]) - 2) ** 2 + (config["cuts"] - 12) ** 2 / 40
    return min(600.0, 60 * math.exp(x))


def test_on_a_plateau_configurations_of_the_design_follow_until_the_losses_differ() -> None:
    history = mc.minimize(seconds, solver_tuning(), 40, seed=4, progress=False).history
    origins, losses = [t.origin for t in history], [t.loss for t in history]
    found = next(k for k, loss in enumerate(losses) if loss != 600.0)
    assert found > 6, "the initial design had one loss"
    assert set(origins[6 : found + 1]) == {"plateau"}
    assert set(origins[found + 1 :]) == {"log-ei"}
    assert min(losses) < 100.0
