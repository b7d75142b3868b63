"""Decoupled evaluation: expected costs, the order of the outputs, and runs of the default optimizer."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mipcash as mc
from mipcash.optimizers.decoupled import expected_costs, first_of, sequence
from mipcash.optimizers.hybrid import Hybrid, HybridSettings
from mipcash.optimizers.optimizer import Limit, Observation, Request
from mipcash.optimizers.outcome import Outcome
from mipcash.space.domain import Domain
from mipcash.study.policies.policy import BEST_OF_ALL
from tests.named import OPTIMIZERS

MS = (Limit("ms", high=5.0),)
SHARE = st.floats(0.0, 1.0)


def request_of(costs: dict[str, float], limits: tuple[Limit, ...] = MS, history: Any = ()) -> Request:
    return Request(history, np.random.default_rng(0), limits=limits, costs=costs)


# -- expected costs -------------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(SHARE, st.floats(0.01, 100.0)), min_size=1, max_size=5))
def test_no_other_order_costs_less(outputs: list[tuple[float, float]]) -> None:
    names = ["loss", *(f"g{k}" for k in range(1, len(outputs)))]
    passes = {name: p for name, (p, _) in zip(names, outputs, strict=True)}
    costs = {name: c for name, (_, c) in zip(names, outputs, strict=True)}
    cost, order = sequence(passes, request_of(costs, tuple(Limit(n, high=0.0) for n in names[1:])))
    assert sorted(order) == sorted(names)

    def expected(names: Any) -> float:
        return sum(costs[n] * math.prod(passes[m] for m in names[:k]) for k, n in enumerate(names))

    least = min(expected(each) for each in itertools.permutations(names))
    assert cost == pytest.approx(expected(order))
    assert cost <= least * (1.0 + 1e-6) + 1e-9


def test_expected_costs_are_those_of_drawn_evaluations() -> None:
    rng = np.random.default_rng(0)
    p, costs, rest = np.array([0.3, 0.8]), np.array([2.0, 1.0]), 60.0
    kept = np.logical_and.accumulate(rng.random((200_000, 2)) < p, axis=1)
    drawn = costs[0] + kept[:, 0] * costs[1] + kept[:, 1] * rest
    log, slopes = expected_costs(np.log(p)[:, None], costs, rest)
    assert math.exp(log[0]) == pytest.approx(drawn.mean(), rel=0.01)
    for k in range(2):
        moved = np.log(p)[:, None].copy()
        moved[k] += 1e-6
        assert (expected_costs(moved, costs, rest)[0] - log)[0] / 1e-6 == pytest.approx(slopes[k, 0], rel=1e-4)


def test_cheap_outputs_are_evaluated_together() -> None:
    limits = tuple(Limit(f"g{k}", high=0.0) for k in range(3))
    request = request_of({"loss": 60.0, "g0": 1.0, "g1": 1.0, "g2": 30.0, "size": 1.0}, limits)
    assert first_of(["g0", "g1", "g2", "loss"], request) == ("g0", "g1")
    assert first_of(["g2", "g0"], request) == ("g2",)
    assert first_of(["loss", "g0"], request) == (
        "loss",
        "size",
    )  # an output without a constraint is evaluated with the loss
    assert first_of(["g0"], request) == ("g0",)


# -- the default optimizer -----------------------------------------------------------------------------------------


def wall() -> mc.Space:
    """Space whose loss falls towards x = 1, where ms exceeds 5. Kind c is slower."""
    space = mc.Space("wall")
    kind = space.categorical("kind", ["a", "b", "c"])
    space.real("x", 0.0, 1.0)
    n = space.integer("n", 1, 8)
    space.rule("few of a", n <= 8 - 4 * kind["a"])
    return space


def loss(config: dict[str, Any]) -> float:
    return float((config["n"] - 5) ** 2 / 20 - config["x"] - 0.2 * (config["kind"] == "c"))


def ms(config: dict[str, Any]) -> float:
    return float(10.0 * config["x"] + 2.0 * (config["kind"] == "c"))


def run(costs: dict[str, float], cost: float, **further: Any) -> mc.Result:
    given = {"limits": {"ms": 5.0}, "progress": False, "optimizer": mc.Method(seconds_per_proposal=None), **further}
    return mc.minimize({"loss": loss, "ms": ms}, wall(), mc.Budget(mc.Cost(cost), costs=costs), **given)


def test_cheap_constraints_are_evaluated_first_and_infeasible_configurations_are_dropped() -> None:
    result = run({"loss": 20, "ms": 1}, 9 * 21, seed=4)
    at: dict[str, dict[str, int]] = {}
    for trial in result.history:
        for name in trial.evaluate:
            assert name not in at.setdefault(repr(trial.config), {})  # no output is evaluated twice
            at[repr(trial.config)][name] = trial.number
    broken = {repr(t.config) for t in result.history if t.values.get("ms", 0.0) > 5.0}
    losses = [(key, numbers["loss"]) for key, numbers in at.items() if "loss" in numbers]
    assert all("ms" in numbers and numbers["ms"] < numbers["loss"] for numbers in at.values() if "loss" in numbers)
    assert len(broken) > 5
    assert not [key for key, number in sorted(losses, key=lambda l: l[1])[3:] if key in broken]
    assert result.config
    assert result.values["ms"] <= 5.0
    assert result.value < -0.4  # the best is -0.5
    assert all(t.origin == "continued" for t in result.history if t.evaluate == ("loss",))
    assert all(wall().is_legal(t.config) for t in result.history)


def test_a_cheap_loss_is_evaluated_first_and_worse_configurations_are_dropped() -> None:
    result = run({"loss": 1, "ms": 20}, 9 * 21, seed=1)
    after = result.history[6:]
    assert {t.evaluate for t in after} == {("loss",), ("ms",)}
    assert sum(t.evaluate == ("loss",) for t in after) > sum(t.evaluate == ("ms",) for t in after)
    assert result.value < -0.4


def test_a_run_is_resumed_with_the_same_proposals(tmp_path: Path) -> None:
    costs = {"loss": 5, "ms": 1}
    for cost in (38, 45):
        parts = run(costs, cost, seed=3, storage=tmp_path / "run.db")
        assert sum(costs[n] for t in parts.history if not t.pending for n in t.evaluate) <= cost
    whole = run(costs, 45, seed=3)
    assert [(t.config, t.evaluate) for t in parts.history] == [(t.config, t.evaluate) for t in whole.history]


@pytest.mark.parametrize(("workers", "costs"), [(1, {"loss": 1, "ms": 60}), (3, {"loss": 60, "ms": 1})])
def test_every_possible_optimum_has_a_known_loss_before_a_space_is_exhausted(workers: int, costs: Any) -> None:
    space = mc.Space("small")
    space.integer("n", 0, 11)
    result = mc.minimize(
        {"loss": lambda c: abs(c["n"] - 8.0), "ms": lambda c: float(c["n"])},
        space,
        mc.Budget(100, costs=costs),
        limits={"ms": 5},
        execution=mc.Execution(workers=workers),
        progress=False,
    )
    assert (result.stopped, result.config) == (BEST_OF_ALL, {"n": 5})
    at = {(t.config["n"], name) for t in result.history for name in t.evaluate}
    assert len(at) == sum(len(t.evaluate) for t in result.history)  # no output is evaluated twice


def test_while_an_output_is_evaluated_another_configuration_is_proposed() -> None:
    space, costs = wall(), {"loss": 60, "ms": 1}
    study = mc.Study(space, limits={"ms": 5.0}, costs=costs)
    for _ in range(9):
        trial = study.ask()
        study.tell(trial, {name: {"loss": loss, "ms": ms}[name](trial.config) for name in trial.evaluate})
    batch = study.ask(4)
    assert len({repr(t.config) for t in batch}) == 4
    far = study.ask(3, distance=2)
    for a, b in itertools.combinations(far, 2):
        assert sum(a.config[name] != b.config[name] for name in ("kind", "n")) >= 2


def test_failed_configurations_are_not_evaluated_again() -> None:
    def crashing(config: dict[str, Any]) -> float:
        if config["kind"] == "b":
            raise mc.Failed("out of memory")
        return loss(config)

    result = mc.minimize(
        {"loss": crashing, "ms": ms},
        wall(),
        mc.Budget(mc.Cost(54), costs={"loss": 5, "ms": 1}),
        limits={"ms": 5.0},
        progress=False,
    )
    failed = [t for t in result.history if t.failed]
    assert len({repr(t.config) for t in failed}) == len(failed) <= 5
    assert result.config
    assert result.config["kind"] != "b"


def test_without_costs_proposals_evaluate_all_outputs() -> None:
    optimizer = Hybrid(Domain.of(wall()))
    history = [
        Observation(c, "done", loss(c), {"ms": ms(c)}, Outcome.of(loss(c), {"ms": ms(c)})) for c in wall().sample(8, 0)
    ]
    plain = optimizer.ask(Request(history, np.random.default_rng(1), limits=MS))
    assert plain.outputs == ()
    assert "begun" not in plain.trace
    other = Hybrid(Domain.of(wall()), HybridSettings(acquisition="thompson"))
    assert other.ask(request_of({"loss": 60.0, "ms": 1.0}, history=history)).outputs == ("ms",)
    unlimited = Request(history, np.random.default_rng(1), costs={"loss": 60.0, "ms": 1.0})
    assert optimizer.ask(unlimited).outputs == ()  # without a constraint there is no output to choose


# -- every optimizer ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_accepts_one_function_per_output(name: str) -> None:
    calls: list[tuple[str, str]] = []

    def counted(output: str, function: Any) -> Any:
        return lambda config: calls.append((repr(config), output)) or function(config)

    space = wall()
    functions = {"loss": counted("loss", loss), "ms": counted("ms", ms)}
    result = mc.minimize(
        functions, space, mc.Budget(16, costs={"loss": 2, "ms": 1}), optimizer=name, limits={"ms": 5.0}, progress=False
    )
    assert len(calls) == sum(len(t.evaluate) for t in result.history if not t.pending) <= 16
    assert all(t.evaluate and space.is_legal(t.config) for t in result.history)
    if result.config is not None:
        assert ms(result.config) <= 5.0
        assert loss(result.config) == result.value
        assert {(repr(result.config), "loss"), (repr(result.config), "ms")} <= set(calls)
