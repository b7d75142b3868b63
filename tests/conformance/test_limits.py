"""Contract of every registered optimizer that takes limits (outcome constraints).

It also applies to every acquisition function of the default optimizer that takes limits.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.acquisition.catalogue import ACQUISITIONS
from mipcash.optimizers.hybrid import HybridSettings
from mipcash.optimizers.optimizer import Limit, Observation, Optimizer, Proposal, Request
from mipcash.optimizers.outcome import Outcome
from mipcash.optimizers.registry import make_optimizer
from tests.named import OPTIMIZERS

LIMITS = (Limit("heat", high=0.4), Limit("grip", low=0.45))
"""A fifth of the configurations is feasible; the configurations with the lowest losses violate a constraint."""
NAMES = (
    *OPTIMIZERS,
    *(f"hybrid:{name}" for name in ACQUISITIONS if name != "log-ei"),
)
UNLEARNED, MODELLESS = ("random",), ("random", "mutation")


def mixed() -> mc.Space:
    space = mc.Space("limited")
    kind = space.categorical("kind", ["a", "b", "c"])
    space.real("x", 0.0, 1.0)
    n = space.integer("n", 1, 8)
    space.integer("depth", 1, 3, when=kind["b"])
    space.rule("few of a", n <= 8 - 4 * kind["a"])
    return space


def measured(config: dict[str, Any]) -> dict[str, float]:
    heat = config["x"] + 0.05 * config["n"] - 0.05 * config.get("depth", 0)
    return {
        "loss": -config["x"] - 0.1 * config["n"] - 0.3 * (config["kind"] == "c"),
        "heat": heat,
        "grip": 1.0 - 0.1 * config["n"] - 0.2 * (config["kind"] == "a"),
    }


BEST = -0.95
"""Lowest feasible loss, at ``c`` with n = 5 and x = 0.15."""


def kept(config: dict[str, Any]) -> bool:
    values = measured(config)
    return not any(limit.violation(values[limit.output]) for limit in LIMITS)


GOOD = -0.38
"""Only a quarter of the feasible configurations has a higher loss."""


def broken(count: int, seed: int) -> list[dict[str, Any]]:
    """Return legal configurations that violate the outcome constraints."""
    return [c for c in mixed().sample(20 * count, seed) if not kept(c)][:count]


def observed(config: dict[str, Any]) -> Observation:
    values = measured(config)
    return Observation(config, "done", values.pop("loss"), values)


def made(name: str) -> Optimizer:
    optimizer, _, acquisition = name.partition(":")
    settings = HybridSettings(acquisition=acquisition) if acquisition else None
    return make_optimizer(optimizer, mixed(), settings=settings)


def run(optimizer: Optimizer, history: list[Observation], asks: int) -> Iterator[Proposal]:
    """Run a minimal loop of proposals; the state passes through JSON as it does in a journal."""
    history, state = list(history), dict[str, Any]()
    for _ in range(asks):
        proposal = optimizer.ask(Request(history, np.random.default_rng([5, len(history)]), state, limits=LIMITS))
        state = json.loads(json.dumps(dict(proposal.state)))
        history.append(observed(proposal.config))
        yield proposal


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    if not made(str(request.param)).takes_limits:
        pytest.skip("takes no limits, and refuses them: tests/study/test_contract.py")
    return str(request.param)


@functools.cache
def first_run(name: str) -> tuple[Proposal, ...]:
    """Proposals after ten infeasible observations: at least four, and more until a good proposal is feasible."""
    proposals = list[Proposal]()
    for proposal in run(made(name), [observed(c) for c in broken(10, 3)], 40 if name in MODELLESS else 15):
        proposals.append(proposal)
        if len(proposals) >= 4 and any(kept(p.config) and measured(p.config)["loss"] < GOOD for p in proposals):
            break
    return tuple(proposals)


def test_feasible_configurations_are_found_from_an_infeasible_start_and_recommended(name: str) -> None:
    optimizer, start, proposals = made(name), [observed(c) for c in broken(10, 3)], first_run(name)
    assert all(mixed().is_legal(p.config) for p in proposals)
    assert optimizer.recommend(start, LIMITS) is None
    history = [*start, *(observed(p.config) for p in proposals)]
    feasible = [measured(o.config)["loss"] for o in history if kept(o.config)]
    answer = optimizer.recommend(history, LIMITS)
    assert (answer is None) == (not feasible)
    assert answer is None or kept(answer.config)
    assert all(loss >= BEST - 1e-9 for loss in feasible)
    assert name in UNLEARNED or min(feasible) < GOOD


def test_the_same_request_gives_the_same_proposals(name: str) -> None:
    (again,) = run(made(name), [observed(c) for c in broken(10, 3)], 1)
    assert again.config == first_run(name)[0].config


def unobserved(config: dict[str, Any]) -> Observation:
    """Return an observation whose loss is known only if the configuration is feasible."""
    values = measured(config)
    if kept(config):
        return Observation(config, "done", values.pop("loss"), values)
    values["loss"] = math.nan
    return Observation(config, "failed", None, values, Outcome.of(None, values))


def test_losses_known_only_if_feasible_end_the_design_and_a_batch_is_distinct(name: str) -> None:
    optimizer, history = made(name), [unobserved(c) for c in broken(10, 4)]
    feasible = next(c for c in mixed().sample(60, 1) if kept(c))
    for further in ([], [unobserved(feasible)]):
        history += further
        proposal = optimizer.ask(Request(history, np.random.default_rng(len(history)), limits=LIMITS))
        assert proposal.origin != "initial design"
        assert mixed().is_legal(proposal.config)
        assert proposal.config not in [o.config for o in history]
        history.append(Observation(proposal.config, "pending"))


def test_the_initial_design_covers_structures_regardless_of_limits() -> None:
    """Six configurations without history cover every kind and two values of ``depth``, which only ``b`` has."""
    proposals = list(run(made("hybrid"), [], 6))
    assert {p.origin for p in proposals} == {"initial design"}
    assert {p.config["kind"] for p in proposals} == {"a", "b", "c"}
    assert len({p.config["depth"] for p in proposals if "depth" in p.config}) >= 2
