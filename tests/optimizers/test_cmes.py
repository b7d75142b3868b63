"""Runs of constrained max-value entropy search: binary feedback, hidden losses, decoupled outputs, recommendation."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.errors import SpaceError
from mipcash.methods.cmes.cmes import Cmes, CmesSettings
from mipcash.optimizers.hybrid import FAILURE
from mipcash.optimizers.optimizer import Limit, Observation, Request
from mipcash.optimizers.outcome import Outcome
from mipcash.space.domain import Domain

LIMITS = {"heat": 0.5}
LIMIT = Limit("heat", high=0.5)


def walled() -> mc.Space:
    """Space whose loss falls with x until the heat exceeds 0.5. Kind b is hotter and forbidden for large n."""
    space = mc.Space("walled")
    kind = space.categorical("kind", ["a", "b", "c"])
    n = space.integer("n", 1, 6)
    space.real("x", 0.0, 1.0)
    space.rule("few of b", n <= 6 - 4 * kind["b"])
    return space


def heat(config: dict[str, Any]) -> float:
    return float(config["x"] + 0.25 * (config["kind"] == "b"))


def value(config: dict[str, Any]) -> float:
    return float(0.02 * (config["n"] - 4) ** 2 - config["x"] + 0.1 * (config["kind"] == "c"))


def real(config: dict[str, Any]) -> dict[str, float]:
    return {"loss": value(config), "heat": heat(config)}


def answered(config: dict[str, Any]) -> dict[str, float]:
    return {"loss": value(config), "heat": float(heat(config) > 0.5)}


def hidden(config: dict[str, Any]) -> dict[str, float]:
    return {"loss": math.nan if heat(config) > 0.5 else value(config), "heat": float(heat(config) > 0.5)}


@pytest.mark.parametrize(("objective", "within"), [(real, 0.02), (hidden, 0.12)])
def test_it_comes_near_the_constrained_minimum(objective: Any, within: float) -> None:
    result = mc.minimize(objective, walled(), 17, limits=LIMITS, optimizer="cmes", progress=False)
    best = min(value(t.config) for t in result.history if heat(t.config) <= 0.5)
    assert -0.5 <= best <= -0.5 + within
    assert result.config is not None
    assert heat(result.config) <= 0.5


def history_of(objective: Any, count: int = 12) -> list[Observation]:
    configs = walled().sample(count, 3)
    made = []
    for config in configs:
        told = objective(config)
        lost = math.isnan(told["loss"])
        outcome = Outcome.failure("", told) if lost else Outcome.of(told["loss"], {"heat": told["heat"]})
        made.append(Observation(config, "failed" if lost else "done", outcome.loss, outcome.values, outcome))
    return made


def cmes(**settings: Any) -> Cmes:
    return Cmes(Domain.of(walled()), CmesSettings(**settings))


def test_constraints_with_binary_feedback_are_learned_by_their_sign() -> None:
    """The constraints with binary feedback follow from the values, or from the settings."""
    for objective, feedback, expected in [
        (real, "auto", {FAILURE}),
        (answered, "auto", {FAILURE, "heat"}),
        (answered, "real", {FAILURE}),
        (real, "binary", {FAILURE, "heat"}),
    ]:
        optimizer = cmes(feedback=feedback)
        data = optimizer.data(history_of(objective), (LIMIT,))
        assert optimizer._answered(data) == expected
        _, values, ends = optimizer.learned_beside(data)["heat"]
        if "heat" in expected:
            assert values.tolist() == [1.0 if heat(o.config) > 0.5 else -1.0 for o in history_of(real)]
            assert ends == (-math.inf, 0.0)


@pytest.mark.parametrize("sampling", ["joint", "marginal"])
def test_proposals_go_on_while_no_configuration_can_be_feasible(sampling: str) -> None:
    limit, history, state = Limit("heat", high=-5.0), history_of(real), {}
    optimizer = cmes(sampling=sampling, minima=7)
    for k in range(2):
        proposal = optimizer.ask(Request(history, np.random.default_rng(k), state, limits=(limit,)))
        state = json.loads(json.dumps(dict(proposal.state)))
        history.append(Observation(proposal.config, "done", value(proposal.config), {"heat": heat(proposal.config)}))
    assert optimizer.recommend(history, (limit,)) is None


def apart(costs: dict[str, float], asks: int = 6) -> list[tuple[str, ...]]:
    """Return the outputs that are evaluated at these costs. Assert that no output of a configuration is repeated."""
    optimizer, history, state = cmes(), history_of(real, 8), {}
    asked: list[tuple[str, ...]] = []
    for k in range(asks):
        request = Request(history, np.random.default_rng(k), state, limits=(LIMIT,), costs=costs)
        proposal = optimizer.ask(request)
        state = json.loads(json.dumps(dict(proposal.state)))
        names = proposal.outputs or ("loss", "heat")
        told = real(proposal.config)
        for o in history:
            if o.config == proposal.config:
                assert not set(names) & {n for n, out in o.outcome.outputs.items() if out.status == "present"}
        values = {"heat": told["heat"]} if "heat" in names else {}
        history.append(Observation(proposal.config, "done", told["loss"] if "loss" in names else None, values))
        asked.append(names)
    return asked


def test_the_output_with_most_information_per_unit_of_cost_is_evaluated() -> None:
    dear, cheap = apart({"loss": 100.0, "heat": 1.0}), apart({"loss": 1.0, "heat": 100.0})
    assert sum("heat" in names and len(names) == 1 for names in dear) > sum("heat" in names for names in cheap)
    assert sum("loss" in names for names in cheap) > sum("loss" in names for names in dear)


def test_the_recommendation_satisfies_constraints_with_the_requested_probability() -> None:
    """The posterior is uncertain near the bound, so a higher requested probability moves the recommendation away."""
    history = history_of(real, 14)
    close = {"kind": "a", "n": 4, "x": 0.5}
    history.append(Observation(close, "done", value(close), {"heat": heat(close)}))
    found = [cmes(delta=delta).recommend(history, (LIMIT,)) for delta in (0.05, 0.999)]
    assert cmes().recommend(history, (LIMIT,)) is history[-1]
    assert found[1] is history[-1]
    assert found[0] is not history[-1]
    assert found[0] is not None
    assert heat(found[0].config) < 0.5
    assert cmes(delta=0.05).recommend(history) is min(history, key=lambda o: o.loss or 0.0)
    assert cmes().recommend(history, (LIMIT,)) is history[-1]


def test_settings_are_checked() -> None:
    for wrong in (
        {"sampling": "some"},
        {"feedback": "yes"},
        {"violation_probability": 1.0},
        {"delta": 0.0},
        {"samples": 2},
    ):
        with pytest.raises(SpaceError, match=next(iter(wrong))):
            CmesSettings(**wrong)  # type: ignore[arg-type]
    assert CmesSettings(violation_probability=0.9).bound == pytest.approx(0.8)


@pytest.mark.parametrize("optimizer", ["cmes", "hybrid"])
def test_a_small_space_is_searched_to_its_last_configuration(optimizer: str) -> None:
    """At the end of the run, the best configuration has no neighbour left to evaluate."""
    space = mc.Space("counts")
    space.integer("n", 0, 9)
    found = mc.minimize(
        lambda c: {"loss": -c["n"], "cores": c["n"]},
        space,
        10,
        optimizer=optimizer,
        limits={"cores": 4.0},
        progress=False,
        seed=0,
    )
    assert len(found.history) == 10
    assert found.config == {"n": 4}
    assert found.safe(0.95) is not None  # a count equal to its bound is feasible
    assert found.safe(0.95).config == {"n": 4}


def test_partially_evaluated_configurations_are_completed_until_one_is_feasible() -> None:
    space = mc.Space("pieces")
    x, k = space.real("x", 0, 1), space.integer("k", 1, 5)
    space.categorical("c", ["a", "b"])
    space.rule("r", x + k / 5 <= 1.6)
    functions = {"loss": lambda c: c["x"], "g": lambda c: c["x"] * c["k"]}
    costs = {"loss": 5, "g": 1}
    found = mc.minimize(
        functions,
        space,
        mc.Budget(mc.Cost(36), costs=costs),
        limits={"g": (0.5, 1.0)},
        optimizer="cmes",
        progress=False,
    )
    assert found.config is not None
