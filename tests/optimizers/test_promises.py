"""Promises: what breaks them, what they leave in the state, and where a search goes that broke them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mipcash as mc
from mipcash.optimizers.base import Observation
from mipcash.optimizers.hybrid import Hybrid, HybridSettings
from mipcash.optimizers.model_based import Data
from mipcash.optimizers.promises import LEAST, WINDOW, Promises
from mipcash.optimizers.registry import make_optimizer
from tests.spaces import ALL


def falling(*losses: float) -> Data:
    found = np.array(losses)
    order = np.argsort(found, kind="stable")
    return Data(np.zeros((len(found), 1), dtype=np.int64), np.ones((len(found), 1)), np.zeros((len(found), 0)), found, order)


def promised(count: int, each: float, before: int = 12) -> Promises:
    made = Promises()
    for k in range(before - count, before):
        made = made.with_another(k, each)
    return made


def test_promises_are_broken_by_gains_far_below_them_and_by_nothing_else() -> None:
    halted = falling(*[3.0] * 5, 1.0, *[1.0 - 1e-3] * WINDOW)
    assert promised(WINDOW, 0.1).broken(halted, 12)
    assert not promised(WINDOW, 1e-3).broken(halted, 12), "a gain of 1e-3 where 6e-3 was promised"
    assert not promised(LEAST - 1, 0.1).broken(halted, 12), "too few to tell"
    assert not promised(WINDOW, 0.1, before=5).broken(halted, 12), "all of them are of earlier times"
    assert not promised(WINDOW, 0.1).broken(falling(*[3.0] * 6, 1.0, *[1.0] * 5), 12), "the gain of 2 is in the window"
    assert not promised(WINDOW, 0.1, before=WINDOW).broken(falling(*[1.0] * WINDOW), WINDOW), "nothing before the window"


def test_promises_survive_the_journal_and_forget_what_is_past() -> None:
    made = promised(40, 0.25, before=40)
    assert Promises.of(json.loads(json.dumps(made.state()))) == made
    assert len(made.made) <= 2 * WINDOW
    assert Promises.of({}) == Promises()


@pytest.mark.parametrize("name", ["conv_net", "bound_numbers", "discrete"])
def test_where_promises_were_broken_every_third_proposal_keeps_away_from_the_incumbent(name: str) -> None:
    space = ALL[name]()
    history = [Observation(c, "done", 1.0 + k % 7 / 7) for k, c in enumerate(space.sample(18, 0))]
    state = {"promised": [[k, 1.0] for k in range(18 - WINDOW, 18)]}
    groups = len(make_optimizer("hybrid", space).program.groups)  # type: ignore[attr-defined]

    def proposed(depart: int) -> tuple[str, int]:
        optimizer = make_optimizer("hybrid", space, settings=HybridSettings(depart=depart))
        assert isinstance(optimizer, Hybrid)
        proposal = optimizer.ask(history, np.random.default_rng(1), state)
        assert space.is_legal(proposal.config)
        assert proposal.solution is not None
        assert proposal.solution.bound <= proposal.solution.value + 1e-6
        levels = optimizer.program.encode(proposal.config)
        return proposal.origin, int(np.sum(levels != optimizer.data(history).best(1)[0][0]))

    origin, distance = proposed(3)
    assert origin == "exploration"
    assert distance > groups / 2
    assert proposed(0)[0] == "log-ei"


def test_an_expected_improvement_is_told_in_units_of_loss() -> None:
    space = mc.Space("one real")
    space.real("x", 0, 1)
    optimizer = make_optimizer("hybrid", space)
    assert isinstance(optimizer, Hybrid)

    def promise(unit: float) -> float:
        history = [Observation({"x": k / 11}, "done", unit * (k / 11 - 0.37) ** 2) for k in range(12)]
        state = optimizer.ask(history, np.random.default_rng(0), {}).state
        return Promises.of(state).made[-1][1]

    assert promise(1000.0) == pytest.approx(1000.0 * promise(1.0), rel=1e-3)
