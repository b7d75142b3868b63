"""Runs of ADMM: phases, pending and failed trials, tiny spaces, orderings, outcome constraints and the loss reached."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.methods.admm import AdmmSettings
from mipcash.methods.admm.jopt import RoundedSearch
from mipcash.optimizers.optimizer import Limit, Observation, Optimizer, Proposal, Request
from mipcash.optimizers.outcome import LOSS, PRESENT, Outcome, Output
from mipcash.optimizers.registry import make_optimizer


def pipeline(order: bool = False) -> mc.Space:
    """Space with two modules, hyperparameters of every kind, and rules on choices and on numerical parameters."""
    space = mc.Space("pipeline")
    scaler = space.module(
        "scaler", {"none": {}, "bins": {"n": mc.Integer(2, 6)}, "power": {"how": mc.Categorical(list("abc"))}}
    )
    model = space.module(
        "model",
        {
            "tree": {"depth": mc.Integer(1, 5), "leaf": mc.Ordinal([1, 2, 5])},
            "linear": {"c": mc.Real(0.01, 10.0, log=True)},
            "wide": {"units": mc.Integer(1, 500)},
        },
    )
    space.rule("no bins before linear", scaler["bins"] + model["linear"] <= 1)
    space.rule("bins and depth", scaler["bins"]["n"] + model["tree"]["depth"] <= 7)
    if order:
        chosen = space.ordering("order", [scaler, model])
        space.rule("scale first", chosen.position(scaler) <= chosen.position(model) + 1)
    return space


def loss(config: dict[str, Any]) -> float:
    """Loss with the minimum 0 at bins with n = 2 and a tree of depth 4 and leaf 2."""
    value = {"none": 0.6, "bins": 0.0, "power": 0.4}[config["scaler"]] + 0.2 * (config.get("scaler.bins.n", 2) - 2)
    if config["model"] == "tree":
        return value + 0.1 * abs(config["model.tree.depth"] - 4) + 0.05 * (config["model.tree.leaf"] != 2)
    if config["model"] == "linear":
        return value + 0.5 + 0.1 * abs(float(np.log10(config["model.linear.c"])))
    return value + 0.7 + abs(config["model.wide.units"] - 333) / 1000


def run(
    optimizer: Optimizer,
    n: int,
    outcome: Any = loss,
    history: Any = (),
    limits: Any = (),
    state: Any = None,
    seed: int = 0,
) -> list[Proposal]:
    """Run a minimal optimization loop. The state passes through JSON, as it does in a journal."""
    history, proposals = list(history), list[Proposal]()
    for _ in range(n):
        p = optimizer.ask(Request(history, np.random.default_rng([seed, len(history)]), state or {}, limits=limits))
        state = json.loads(json.dumps(dict(p.state)))
        told = outcome(p.config)
        values = told if isinstance(told, dict) else {"loss": told}
        known = {name: v for name, v in values.items() if name != "loss"}
        failed = values["loss"] is None
        history.append(Observation(p.config, "failed" if failed else "done", values["loss"], known))
        proposals.append(p)
    return proposals


def made(space: mc.Space | None = None, **settings: Any) -> Optimizer:
    return make_optimizer("admm", space or pipeline(), settings=AdmmSettings(**settings))


def test_phases_alternate_and_theta_min_keeps_z() -> None:
    optimizer: Any = made(n_initial=3, first=3, growth=2)
    proposals = run(optimizer, 3 + 2 * 3 + 2 * 5)
    assert [p.trace.get("subproblem", "") for p in proposals[:3]] == [""] * 3
    turns = [(p.trace["iteration"], p.trace["subproblem"]) for p in proposals[3:]]
    for t, steps in ((0, 3), (1, 5)):
        assert all(1 <= turns.count((t, phase)) <= steps for phase in ("theta", "z"))
    keys = [key for key, _ in itertools.groupby(turns)]
    assert keys == sorted(keys)
    assert any("primal" in p.trace and "dual" in p.trace for p in proposals)
    for p in proposals[3:]:
        levels = optimizer.domain.program.encode(p.config)[optimizer.variables.choices]
        assert p.trace["subproblem"] == "z" or levels.tolist() == p.state["z"]
    for rho, multipliers in ((0.0, False), (1.0, True)):
        assert any(np.any(p.state["lam"]) for p in run(made(rho=rho), 20)[6:]) == multipliers


@pytest.mark.parametrize(("theta_min", "z_min"), [("gp", "gp"), ("random", "bandit"), ("random", "random")])
def test_every_solver_makes_legal_and_new_proposals(theta_min: str, z_min: str) -> None:
    """The ordering of the modules is chosen like every other choice."""
    space = pipeline(order=True)
    proposals = run(made(space, theta_min=theta_min, z_min=z_min, n_initial=3), 18)
    assert all(space.is_legal(p.config) for p in proposals)
    assert len({repr(p.config) for p in proposals}) == 18
    assert len({p.config["order"] for p in proposals}) > 1


@pytest.mark.parametrize("settings", [{}, {"rho": 1.0, "warm_start": False, "f_hat": 2.0}])
def test_it_finds_the_best_of_a_small_pipeline(settings: dict[str, Any]) -> None:
    assert min(loss(p.config) for p in run(made(**settings), 32)) <= 0.15


def test_a_cold_start_uses_no_evaluations_of_earlier_phases() -> None:
    optimizer: Any = made(warm_start=False)
    solver, seen = optimizer.theta_min, list[tuple[int, int]]()

    def watched(problem: Any) -> Any:
        seen.append((len(problem.f), len(problem.own)))
        return solver(problem)

    optimizer.theta_min = watched
    run(optimizer, 22)
    assert all(rows == own for rows, own in seen)
    assert sum(own == 0 for _, own in seen) > 1


def test_pending_trials_are_neither_waited_for_nor_proposed_again() -> None:
    optimizer, space = made(), pipeline()
    history: list[Observation] = []
    state: dict[str, Any] = {}
    for k in range(30):  # up to eight are pending, and their results arrive in another order
        p = optimizer.ask(Request(history, np.random.default_rng(k), state))
        state = json.loads(json.dumps(dict(p.state)))
        assert space.is_legal(p.config)
        assert p.config not in [o.config for o in history]
        history.append(Observation(p.config, "pending"))
        waiting = [i for i, o in enumerate(history) if o.status == "pending"]
        if len(waiting) == 8:
            at = waiting[k % 5]
            history[at] = Observation(history[at].config, "done", loss(history[at].config))
    assert state["iteration"] >= 1
    assert len(state["asked"]) < 24


def test_failing_choices_are_not_selected_and_earn_no_reward() -> None:
    def crashes(config: dict[str, Any]) -> float | None:
        return None if config["scaler"] == "bins" else loss(config)

    proposals = run(made(), 20, crashes)
    state = proposals[-1].state
    assert state["z"][0] != 1  # bins
    assert state["rewards"][1] == 0.0
    assert state["counts"][1] > 0.0


def test_a_space_without_choices_is_searched_by_theta_min_only() -> None:
    space = mc.Space("numbers")
    space.integer("n", 0, 3)
    space.real("x", -1.0, 1.0)
    proposals = run(made(space), 25, lambda c: (c["x"] - 0.37) ** 2 + abs(c["n"] - 2))
    assert {p.trace["subproblem"] for p in proposals[6:]} == {"theta"}
    assert min((p.config["x"] - 0.37) ** 2 + abs(p.config["n"] - 2) for p in proposals) < 1e-3


def tuned() -> mc.Space:
    """Space with two modules of three algorithms, each with an integer and a real parameter."""
    space = mc.Space("tuned")
    for name in ("first", "second"):
        space.module(name, {a: {"n": mc.Integer(0, 20), "x": mc.Real(0.0, 1.0)} for a in "pqr"})
    return space


LIMITS = (Limit("latency", high=0.6),)
BEST = -1.0
"""Lowest feasible loss, of q in both modules with x = 0.5."""


def limited(config: dict[str, Any]) -> dict[str, float]:
    """Return loss and latency. The lowest losses, of p at x = 1, violate the constraint. The best integers are 10."""
    value, slow = 0.0, 0.0
    for name in ("first", "second"):
        algorithm = config[name]
        x, n = config[f"{name}.{algorithm}.x"], config[f"{name}.{algorithm}.n"]
        value -= {"p": 1.0, "q": 1.0, "r": 0.3}[algorithm] * x - 0.005 * abs(n - 10)
        slow += {"p": 1.0, "q": 0.6, "r": 0.2}[algorithm] * x
    return {"loss": value, "latency": slow}


@pytest.mark.parametrize("settings", [{}, {"free_slack": False, "rho": 1.0, "limit_rho": None}])
def test_outcome_constraints_change_multipliers_and_proposals(settings: dict[str, Any]) -> None:
    def keeps(proposals: list[Proposal]) -> np.ndarray:
        return np.array([limited(p.config)["latency"] <= 0.6 for p in proposals])

    proposals = run(made(tuned(), **settings), 36, limited, limits=LIMITS)
    without = run(made(tuned(), **settings), 36, limited)
    assert keeps(proposals)[15:].mean() > keeps(without)[15:].mean() + 0.1
    assert any(p.state["mu"][0] > 0.0 for p in proposals[6:])
    best = min(limited(p.config)["loss"] for p, kept in zip(proposals, keeps(proposals), strict=True) if kept)
    assert best <= 0.6 * BEST
    loose = run(made(tuned(), **settings), 12, limited, limits=(Limit("latency", high=100.0),))
    assert [p.config for p in loose] == [p.config for p in without[:12]]


def test_residuals_stop_a_run_only_with_a_tolerance() -> None:
    assert not any(p.stop for p in run(made(), 16))
    stopped = [p.stop for p in run(made(tolerance=1.0), 16)]
    assert any("residuals" in reason for reason in stopped)


@pytest.mark.parametrize("status", ["pending", "failed"])
def test_without_a_settled_loss_the_solver_proposes(status: str) -> None:
    """A pending trial may have a loss already, while a constrained output is unknown."""
    space = pipeline()
    history = [
        Observation(c, status, outcome=Outcome.of(1.0 if status == "pending" else None)) for c in space.sample(2, 0)
    ]
    made = make_optimizer("admm", space, settings=AdmmSettings(n_initial=1)).ask(
        Request(history, np.random.default_rng(0), {})
    )
    assert space.is_legal(made.config)


def test_a_choice_that_is_pending_elsewhere_is_evaluated_here() -> None:
    space = mc.Space("choices")
    space.categorical("z", ["a", "b"])
    space.real("x", 0, 1)
    optimizer = make_optimizer("admm", space, settings=AdmmSettings(n_initial=1, first=1, z_min="random"))
    history = [Observation({"z": "a", "x": 0.5}, "done", 1.0), Observation({"z": "b", "x": 0.25}, "pending")]
    state: dict[str, Any] = {}
    for _ in range(3):
        made = optimizer.ask(Request(history, np.random.default_rng(0), state))
        state = json.loads(json.dumps(dict(made.state)))
        history.append(Observation(made.config, "done", 1.0 + len(history)))
        if made.origin == "z-min":
            break
    assert (made.origin, made.config["z"]) == ("z-min", "b")


def test_a_space_without_integers_and_constraints_is_not_stopped_by_residuals() -> None:
    space = mc.Space("real")
    space.real("x", 0, 1)
    settings = AdmmSettings(n_initial=2, first=2, tolerance=0.1)
    result = mc.minimize(lambda c: c["x"], space, 14, optimizer=mc.Method("admm", settings), progress=False)
    assert (result.stopped, len(result.history)) == ("budget", 14)


def test_a_middle_level_is_active() -> None:
    """The middle of a range is encoded as 1/2, as inactive parameters are."""
    space = mc.Space("middle")
    a = space.ordinal("a", [1, 2, 3])
    space.integer("b", 1, 5)
    space.real("x", 0.0, 1.0, when=a.is_(2, 3))
    optimizer = make_optimizer("jopt", space)
    search = RoundedSearch(optimizer.domain, optimizer.cube, 8, 2, 1, 1)
    rows = optimizer.cube.encode(optimizer.domain.encode([{"a": 2, "b": 3, "x": 0.5}, {"a": 1, "b": 3}]))
    assert search.active(rows).tolist() == [[True, True, True], [True, True, False]]


def pruned(loss: float) -> Outcome:
    return Outcome({LOSS: Output(PRESENT, loss, variance=0.1)})


def test_jopt_goes_on_if_all_that_is_legal_was_pruned() -> None:
    space = mc.Space("pruned")
    space.real("x", 0.0, 1.0)
    history = [Observation({"x": x}, "done", outcome=pruned(x)) for x in (0.2, 0.7)]
    made = make_optimizer("jopt", space, settings={"n_initial": 2}).ask(Request(history, np.random.default_rng(0), {}))
    assert space.is_legal(made.config)
