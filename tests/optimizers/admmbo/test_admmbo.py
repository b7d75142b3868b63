"""Runs of ADMMBO: order of proposals, convergence, mixed spaces, parallel runs, small spaces, recommendations."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.acquisition.mixed_search import LocalSearchSettings
from mipcash.deadline import Clock
from mipcash.errors import SpaceExhaustedError
from mipcash.methods.admmbo.admmbo import Admmbo, _Ask
from mipcash.methods.admmbo.settings import AdmmboSettings
from mipcash.optimizers.model_based import Step
from mipcash.optimizers.optimizer import Limit, Observation, Proposal, Request
from mipcash.optimizers.outcome import LOSS, PRESENT, Outcome, Output
from mipcash.space.domain import Domain

QUICK = LocalSearchSettings(walks=40, survivors=2, moved=1, finalists=1, rounds=2)
APART = {"loss": 1.0, "g": 1.0}


def settings(**changes: Any) -> AdmmboSettings:
    return AdmmboSettings(**({"n_initial": 3, "first": 4, "later": 2, "local_search": QUICK} | changes))


def box() -> mc.Space:
    space = mc.Space("box")
    space.real("x", 0.0, 1.0)
    space.real("y", 0.0, 1.0)
    return space


def on_the_box(config: Mapping[str, Any]) -> dict[str, float]:
    """Return the loss and g. The lowest loss with g <= 0 is 0.5, at x = y = 0.25. Without the constraint it is 0."""
    x, y = config["x"], config["y"]
    return {"loss": x + y + 2.0 * (x - y) ** 2, "g": 0.5 - x - y}


def mixed() -> mc.Space:
    space = mc.Space("mixed")
    kind = space.categorical("kind", ["a", "b", "c"])
    n = space.integer("n", 1, 8)
    space.real("x", 0.0, 1.0, when=kind.is_("a", "b"))
    space.rule("few of a", n <= 8 - 4 * kind["a"])
    return space


def on_mixed(config: Mapping[str, Any]) -> dict[str, float]:
    x = config.get("x", 0.5)
    loss = -0.1 * config["n"] - x - 0.3 * (config["kind"] == "c")
    return {"loss": loss, "g": x + 0.05 * config["n"] - 0.2 * (config["kind"] == "b"), "e": float(config["n"])}


def observed(config: Any, values: Mapping[str, float], names: tuple[str, ...] = ()) -> Observation:
    told = {n: v for n, v in values.items() if not names or n in names}
    return Observation(config, "done", told.pop("loss", None), told)


def run(
    space: mc.Space,
    measured: Any,
    limits: tuple[Limit, ...],
    asks: int,
    costs: Mapping[str, float] | None = None,
    chosen: AdmmboSettings | None = None,
) -> tuple[Admmbo, list[Observation], list[Proposal]]:
    """Run the loop until the optimizer stops it. The state passes through JSON, and every ask uses a new instance."""
    domain, history, proposals, state = Domain.of(space), [], [], dict[str, Any]()
    optimizer = Admmbo(domain, chosen or settings())
    for k in range(asks):
        rng = np.random.default_rng([5, k])
        proposal = Admmbo(domain, chosen or settings()).ask(Request(history, rng, state, None, limits, costs or {}))
        state = json.loads(json.dumps(dict(proposal.state)))
        assert space.validate(proposal.config) == []
        history.append(observed(proposal.config, measured(proposal.config), proposal.outputs))
        proposals.append(proposal)
        if proposal.stop:
            break
    return optimizer, history, proposals


def test_decoupled_runs_evaluate_the_loss_then_each_constraint_and_converge_before_the_budget() -> None:
    limits = (Limit("g", high=0.0),)
    optimizer, history, proposals = run(box(), on_the_box, limits, 150, APART, settings(first=8))
    assert [p.outputs for p in proposals[:3]] == [()] * 3  # the initial design evaluates all outputs
    assert [p.outputs for p in proposals[3:11]] == [("loss",)] * 8
    assert proposals[11].outputs == ("g",)
    assert all(p.outputs in (("loss",), ("g",)) for p in proposals[3:-1])
    assert {p.trace["iteration"] for p in proposals[3:11]} == {1}
    assert proposals[-1].stop.startswith("residuals")
    assert len(proposals) < 150
    assert proposals[-1].trace["primal"] <= 0.01
    assert proposals[-1].trace["dual"] <= 0.01
    assert proposals[-1].origin in ("answer", "optimality")
    seen = [(repr(p.config), name) for p in proposals for name in p.outputs or ("loss", "g")]
    assert len(seen) == len(set(seen))
    answer = optimizer.recommend(history, limits)
    assert answer is not None
    assert any(o is answer for o in history)
    values = on_the_box(answer.config)
    assert values["g"] <= 0.0
    assert values["loss"] == pytest.approx(0.5, abs=0.03)


def test_joint_evaluations_serve_all_subproblems() -> None:
    limits = (Limit("g", high=0.0), Limit("loss", high=5.0))
    _, _, proposals = run(box(), on_the_box, limits[:1], 60)
    assert all(p.outputs == () for p in proposals)
    # first = 4 steps of one output each are 2 joint evaluations for each of the two subproblems
    assert [p.origin for p in proposals[3:5]] == ["optimality"] * 2
    assert proposals[5].origin == "feasibility of g <= 0"
    assert len({repr(p.config) for p in proposals}) == len(proposals)
    assert proposals[-1].stop


def test_mixed_spaces_under_rules_are_searched_over_legal_configurations_alone() -> None:
    space, limits = mixed(), (Limit("g", high=0.6),)
    optimizer, history, _ = run(space, on_mixed, limits, 30)
    legal = [{"kind": "c", "n": n} for n in range(1, 9)]
    legal += [{"kind": k, "n": n, "x": x / 200} for k in "ab" for n in range(1, 9) for x in range(201)]
    losses = [on_mixed(c)["loss"] for c in legal if on_mixed(c)["g"] <= 0.6 and space.is_legal(c)]
    answer = optimizer.recommend(history, limits)
    assert answer is not None
    assert on_mixed(answer.config)["g"] <= 0.6
    assert answer.loss is not None
    assert answer.loss <= min(losses) + 0.1


def test_feasibility_subproblems_run_in_parallel() -> None:
    """With all results pending, proposals alternate between the constraints and never repeat an output."""
    domain, costs = Domain.of(mixed()), {"loss": 1.0, "g": 1.0, "e": 1.0}
    limits = (Limit("g", high=0.6), Limit("e", high=5.0))
    optimizer, state, history = Admmbo(domain, settings(n_initial=6, first=3)), dict[str, Any](), []
    proposals = []
    for k in range(18):
        request = Request(history, np.random.default_rng(k), state, None, limits, costs)
        proposal = optimizer.ask(request)
        state = json.loads(json.dumps(dict(proposal.state)))
        proposals.append(proposal)
        waits = k >= 9
        history.append(
            Observation(proposal.config, "pending")
            if waits
            else observed(proposal.config, on_mixed(proposal.config), proposal.outputs)
        )
    wanted = [p.outputs for p in proposals[9:]]
    assert wanted[:6] == [("g",), ("e",)] * 3
    apart = [(repr(p.config), p.outputs) for p in proposals[9:]]
    assert len(apart) == len(set(apart))
    # the iteration ends when the results are reported
    history[9:] = [
        observed(o.config, on_mixed(o.config), p.outputs) for o, p in zip(history[9:], proposals[9:], strict=True)
    ]
    after = optimizer.ask(Request(history, np.random.default_rng(99), state, None, limits, costs))
    assert after.trace["iteration"] >= 2


@pytest.mark.parametrize(
    ("size", "bound", "apart"), [(1, 10.0, False), (1, -1.0, True), (2, 10.0, True), (5, 2.0, True), (5, -1.0, False)]
)
def test_runs_of_small_spaces_end(size: int, bound: float, apart: bool) -> None:
    """A run stops or exhausts the space after every output of every configuration at the latest."""
    space = mc.Space("small")
    a = space.integer("a", 0, 4)
    b = space.categorical("b", ["u", "v"])
    space.rule("few", a + 10 * b["v"] <= size - 1)
    limits, costs = (Limit("g", high=bound),), APART if apart else {}
    optimizer, state, history, ended = Admmbo(Domain.of(space), settings()), dict[str, Any](), [], ""
    for k in range(2 * size + 2):
        try:
            proposal = optimizer.ask(Request(history, np.random.default_rng(k), state, None, limits, costs))
        except SpaceExhaustedError:
            ended = "exhausted"
            break
        state = json.loads(json.dumps(dict(proposal.state)))
        assert space.is_legal(proposal.config)
        config = proposal.config
        values = {"loss": -float(config["a"]), "g": float(config["a"])}
        history.append(observed(config, values, proposal.outputs))
        if proposal.stop:
            ended = proposal.stop
            break
    assert ended
    answer = optimizer.recommend(history, limits)
    kept = [a for a in range(size) if a <= bound]
    if kept and ended == "exhausted":
        assert answer is not None
        assert answer.config["a"] <= bound
    if not kept:
        assert answer is None
        assert not ended.startswith("residuals")


def test_an_equality_is_a_pair_of_inequalities() -> None:
    def measured(config: Mapping[str, Any]) -> dict[str, float]:
        return {"loss": config["x"] ** 2 + config["y"] ** 2, "g": config["x"] + config["y"]}

    limits = (Limit("g", 0.8, 0.8),)
    optimizer, history, proposals = run(box(), measured, limits, 45, APART, settings(first=8, equality=0.02))
    for end in ("<=", ">="):
        assert any(p.origin.startswith(f"feasibility of g {end}") for p in proposals)
    state = proposals[-1].state
    assert len(state["z"]) == len(state["y"]) == 2
    assert set(state["models"]) == {"loss", "g"}  # both inequalities use the model of g
    answer = optimizer.recommend(history, limits)
    assert answer is not None
    values = measured(answer.config)
    assert abs(values["g"] - 0.8) <= 0.02 * 2.0
    assert values["loss"] <= 0.32 + 0.08


def test_the_recommendation_satisfies_constraints_with_the_requested_probability() -> None:
    """With noisy g, the lowest feasible loss satisfies the constraint by chance, so it is not recommended."""
    space = mc.Space("line")
    space.real("x", 0.0, 1.0)
    rng = np.random.default_rng(0)
    xs = np.linspace(0.0, 1.0, 41)
    history = [
        Observation({"x": float(x)}, "done", float(x), {"g": 0.5 - x + 0.1 * float(e)})
        for x, e in zip(xs, rng.normal(size=len(xs)), strict=True)
    ]
    optimizer, limits = Admmbo(Domain.of(space)), (Limit("g", high=0.0),)
    lucky = min(o.config["x"] for o in history if o.values["g"] <= 0.0)
    answer = optimizer.recommend(history, limits)
    assert answer is not None
    assert lucky < 0.5 < answer.config["x"] < 0.7
    surer = Admmbo(Domain.of(space), AdmmboSettings(delta=1e-4)).recommend(history, limits)
    assert surer is not None
    assert surer.config["x"] > answer.config["x"]
    # no configuration is feasible with the requested probability: the best feasible observation, if any
    assert optimizer.recommend(history[:9], (Limit("g", high=-5.0),)) is None
    assert optimizer.recommend([], limits) is None


def test_a_point_without_an_observed_loss_is_recommended_by_its_predicted_loss() -> None:
    history = [observed(c, on_the_box(c), ("loss",)) for c in box().sample(12, 0)]
    history += [observed(c, on_the_box(c), ("g",)) for c in box().sample(12, 1)]
    optimizer, limits = Admmbo(Domain.of(box())), (Limit("g", high=0.0),)
    answer = optimizer.recommend(history, limits)
    assert answer is not None
    assert on_the_box(answer.config)["g"] <= 0.0
    losses = [on_the_box(o.config)["loss"] for o in history if on_the_box(o.config)["g"] <= 0.0]
    assert on_the_box(answer.config)["loss"] <= min(losses) + 0.05


def test_failing_configurations_are_avoided() -> None:
    space, limits = mixed(), (Limit("g", high=0.6),)
    optimizer, state, history = Admmbo(Domain.of(space), settings(n_initial=6)), dict[str, Any](), []
    for k in range(18):
        proposal = optimizer.ask(Request(history, np.random.default_rng(k), state, None, limits))
        state = dict(proposal.state)
        failed = proposal.config["kind"] == "b"
        values = on_mixed(proposal.config)
        history.append(Observation(proposal.config, "failed") if failed else observed(proposal.config, values))
    assert sum(o.status == "failed" for o in history[12:]) <= 2
    assert optimizer.recommend(history, limits) is not None


def test_a_pending_configuration_is_not_recommended() -> None:
    history = [observed(c, on_the_box(c), ("loss",)) for c in box().sample(8, 0)]
    history += [replace(observed(c, on_the_box(c), ("g",)), status="pending") for c in box().sample(8, 1)]
    answer = Admmbo(Domain.of(box())).recommend(history, (Limit("g", high=0.0),))
    assert answer is None or answer.status != "pending"


def test_a_pruned_loss_is_no_answer_of_the_optimality_subproblem() -> None:
    """It is an estimate; if all were pruned, the lowest estimate is the answer."""
    space = mc.Space("line")
    space.real("x", 0.0, 1.0)
    optimizer = Admmbo(Domain.of(space), settings(n_initial=2))
    estimate = Observation(
        {"x": 0.9}, "done", outcome=Outcome({LOSS: Output(PRESENT, 0.0, variance=0.1), "g": Output.of(0.0)})
    )
    for whole, x in (([(0.1, 1.0), (0.5, 1.2)], 0.1), ([], 0.9)):
        history = [estimate, *(observed({"x": at}, {"loss": loss, "g": 0.0}) for at, loss in whole)]
        request = Request(history, np.random.default_rng(0), {}, None, (Limit("g", high=0.5),))
        asked = _Ask(optimizer, Step(request, optimizer.data(history, request.limits), Clock()))
        assert asked.vectors[asked._best(0)] == pytest.approx([x])


def test_the_unit_of_the_loss_is_set_once_two_losses_differ() -> None:
    space, limits = mixed(), (Limit("g", high=0.6),)
    optimizer, state, history, units = Admmbo(Domain.of(space), settings(n_initial=1)), dict[str, Any](), [], []
    for k in range(4):
        proposal = optimizer.ask(Request(history, np.random.default_rng(k), state, None, limits))
        state = dict(proposal.state)
        units.append(state.get("unit"))
        values = on_mixed(proposal.config)
        history.append(observed(proposal.config, values | {"loss": 1e6 * values["loss"]}))
    losses = [o.loss or 0.0 for o in history[:2]]
    assert units == [None, 0.0, pytest.approx(abs(losses[0] - losses[1])), pytest.approx(abs(losses[0] - losses[1]))]


def test_invalid_settings_are_refused() -> None:
    for wrong in (
        {"rho": 0.0},
        {"penalty": math.inf},
        {"unit": "one"},
        {"improvement": math.nan},
        {"delta": 1.0},
        {"factor": 1.0},
        {"coordinates": "polar"},
        {"first": 0},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            AdmmboSettings(**wrong)
    paper = AdmmboSettings.paper(rho=2.0)
    assert (paper.rho, paper.n_initial, paper.unit, paper.coordinates) == (2.0, 2, 1.0, "natural")
