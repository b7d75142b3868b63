"""Failures arrive with their kind, carry what is known, and a start where everything fails still moves."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.optimizers.optimizer import Observation, Request
from mipcash.optimizers.outcome import PRESENT
from mipcash.optimizers.registry import make_optimizer
from mipcash.study.failures import kind_of_failure, kinds

KINDS: dict[str, tuple[Any, str]] = {
    "raises": (ValueError("no such width: (3:4)"), "ValueError"),
    "runs out": (MemoryError(), "out of memory"),
    "says so": (mc.Failed("diverged at step 17", values={"latency_ms": 3.0}), "Failed: diverged at step #"),
    "is huge": ({"loss": 1e200}, "too large"),
    "nan": (float("nan"), "nan"),
    "minus inf": ({"loss": -float("inf")}, "inf"),
    "nothing": (None, "no loss"),
    "works": (1.0, ""),
}


def failing(config: dict[str, Any]) -> Any:
    outcome = KINDS[config["what"]][0]
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def test_every_failure_arrives_with_its_kind() -> None:
    space = mc.Space("failing")
    space.categorical("what", list(KINDS))
    result = mc.minimize(failing, space, len(KINDS), optimizer="random", progress=False)
    found = {t.config["what"]: kind_of_failure(t.message) for t in result.history if t.failed}
    assert found == {what: kind for what, (_, kind) in KINDS.items() if kind}
    assert len(kinds(result.history)["out of memory"]) == 1
    assert result.value == 1.0


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("ZeroDivisionError: division by zero (a.py:3)", "ZeroDivisionError"),
        ("OutOfMemoryError: CUDA out of memory (a.py:3)", "out of memory"),
        ("the executor failed: PicklingError: no (b.py:1)", "PicklingError"),
        ("its worker died 3 times; at last: BrokenProcessPool: a process was terminated (c.py:9)", "worker died"),
        ("its worker died 1 times; at last: the worker process was killed by SIGKILL", "out of memory"),
        ("step 3: loss is 1e9", "Failed: step #: loss is #"),
        ("", "Failed"),
        ("Error: line one\nline two (d.py:9)", "Error"),
    ],
)
def test_the_kind_is_read_off_the_message(message: str, kind: str) -> None:
    assert kind_of_failure(message) == kind


def test_a_failure_carries_what_is_known() -> None:
    space = mc.Space("known")
    space.real("x", 0.0, 1.0)
    study = mc.Study(space, limits={"latency_ms": 2.0})
    told = study.tell(study.ask(), mc.Failed("diverged", values={"latency_ms": 3.0, "note": "at once"}))
    assert told.failed
    assert told.outcome["latency_ms"].status == PRESENT
    assert told.values == {"latency_ms": 3.0}
    assert told.texts == {"note": "at once"}
    assert told.message == "diverged"
    for values in ([1.0], {"loss": 1.0}):
        with pytest.raises(ValueError, match=r"values|loss"):
            mc.Failed("why", values=values)  # type: ignore[arg-type]
    assert pickle.loads(pickle.dumps(mc.Failed("a", values={"b": 1.0}))).values == {"b": 1.0}


def test_limits_are_learned_from_what_a_failure_knows() -> None:
    """Latency is 10 x and the limit 5; above 0.5 nothing but the latency is known."""
    space = mc.Space("learned")
    space.real("x", 0.0, 1.0)
    limits = mc.Study(space, limits={"latency_ms": 5.0}).limits
    history = [_observed({"x": x}, x <= 0.5) for x in (0.05, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9)]
    proposal = make_optimizer("hybrid", space).ask(Request(history, np.random.default_rng(0), {}, limits=limits))
    assert 0.4 < proposal.config["x"] <= 0.52


def _observed(config: dict[str, Any], works: bool) -> Observation:
    values = {"latency_ms": 10.0 * config["x"]}
    return Observation(config, "done" if works else "failed", -config["x"] if works else None, values)


# -- a start where everything fails ---------------------------------------------------------------------------------


def crashing() -> mc.Space:
    space = mc.Space("crashing")
    kind = space.categorical("kind", ["a", "b", "c", "d"])
    space.real("x", 0.0, 1.0)
    n = space.integer("n", 1, 12)
    space.module("how", {"plain": {}, "tuned": {"rate": mc.Real(1e-3, 1.0, log=True)}})
    space.rule("few of a", n <= 8 + 4 * (1 - kind["a"]))
    return space


def works(config: dict[str, Any]) -> bool:
    return config["kind"] == "c" and config["x"] > 0.5


def test_where_the_first_twenty_fail_proposals_stay_spread_and_new() -> None:
    space, history = crashing(), list[Observation]()
    optimizer, state = make_optimizer("hybrid", space), dict[str, Any]()
    for k in range(32):
        proposal = optimizer.ask(Request(history, np.random.default_rng([3, k]), state))
        state = proposal.state
        assert space.is_legal(proposal.config)
        good = k >= 20 and works(proposal.config)
        loss = (proposal.config["x"] - 0.8) ** 2 if good else None
        history.append(Observation(proposal.config, "done" if good else "failed", loss))
    assert all(a.config != b.config for a, b in itertools.combinations(history, 2))
    first = [o.config for o in history[:20]]
    assert {c["kind"] for c in first} == {"a", "b", "c", "d"}
    assert min(c["x"] for c in first) < 0.2
    assert max(c["x"] for c in first) > 0.8
    found = [o for o in history[20:] if o.status == "done"]
    assert len(found) >= 3
    assert min(o.loss or 0.0 for o in found) < 0.01


def test_a_batch_while_everything_fails_is_new_and_legal() -> None:
    space = crashing()
    study = mc.Study(space)
    for _ in range(5):
        batch = study.ask(4)
        assert len({repr(t.config) for t in study.trials}) == len(study.trials)
        for trial in batch[:3]:  # one of each stays pending
            study.tell(trial, 1.0 - trial.config["x"] if works(trial.config) and len(study.trials) > 12 else None)
    assert all(space.is_legal(t.config) for t in study.trials)
    assert sum(t.pending for t in study.trials) == 5


def test_a_space_in_which_everything_fails_is_exhausted_and_nothing_is_called_optimal() -> None:
    space = mc.Space("hopeless")
    space.categorical("kind", ["a", "b", "c"])
    space.integer("n", 1, 3)

    def crash(config: dict[str, Any]) -> float:
        raise mc.Failed("always")

    result = mc.minimize(crash, space, 50, progress=False)
    assert result.n_failed == 9
    assert result.stopped == "space exhausted"
    assert result.config is None
