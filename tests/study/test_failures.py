"""Failures arrive with their kind, carry what is known, and a start where everything fails still moves."""

from __future__ import annotations

import itertools
import os
import pickle
import time
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.optimizers.optimizer import Observation, Request
from mipcash.optimizers.outcome import PRESENT
from mipcash.optimizers.registry import make_optimizer
from mipcash.study.failures import kind_of_failure, kinds
from tests.named import OPTIMIZERS


def failing(config: dict[str, Any]) -> Any:
    what = config["what"]
    if what == "raises":
        raise ValueError("no such width: (3:4)")
    if what == "takes long":
        time.sleep(60)
    if what == "runs out":
        raise MemoryError
    if what == "is killed":
        os.kill(os.getpid(), 9)
    if what == "exits":
        os._exit(3)
    if what == "is huge":
        return {"loss": 1e200}
    if what == "says so":
        raise mc.Failed("diverged at step 17", values={"latency_ms": 3.0})
    return {"nan": float("nan"), "minus inf": {"loss": -float("inf")}, "nothing": None, "works": 1.0}[what]


KINDS = {
    "raises": "ValueError",
    "takes long": "timed out",
    "runs out": "out of memory",
    "is killed": "out of memory",
    "exits": "worker died",
    "is huge": "too large",
    "says so": "Failed: diverged at step #",
    "nan": "nan",
    "minus inf": "inf",
    "nothing": "no loss",
}


def test_every_failure_arrives_with_its_kind() -> None:
    space = mc.Space("failing")
    space.categorical("what", [*KINDS, "works"])
    result = mc.minimize(
        failing,
        space,
        len(KINDS) + 1,
        optimizer="random",
        execution=mc.Execution(evaluation_timeout=1.0, retries=0),
        progress=False,
    )
    assert {t.config["what"]: kind_of_failure(t.message) for t in result.history if t.failed} == KINDS
    assert len(kinds(result.history)["out of memory"]) == 2
    assert result.value == 1.0


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("ZeroDivisionError: division by zero (a.py:3)", "ZeroDivisionError"),
        ("OutOfMemoryError: CUDA out of memory (a.py:3)", "out of memory"),
        ("the executor failed: PicklingError: no (b.py:1)", "PicklingError"),
        ("its worker died 3 times; at last: BrokenProcessPool: a process was terminated (c.py:9)", "worker died"),
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
    assert pickle.loads(pickle.dumps(mc.Failed("a", values={"b": 1.0}))).values == {"b": 1.0}


def test_limits_are_learned_from_what_a_failure_knows() -> None:
    """Latency is 10 x and the limit 5; above 0.5 nothing but the latency is known."""
    space = mc.Space("learned")
    space.real("x", 0.0, 1.0)
    optimizer = make_optimizer("hybrid", space)
    limits = mc.Study(space, limits={"latency_ms": 5.0}).limits
    history = [_observed({"x": x}, x <= 0.5) for x in (0.05, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9)]
    data = optimizer.data(history, limits)  # type: ignore[attr-defined]
    rows, values = data.values("latency_ms")
    assert len(rows) == len(history)
    assert list(values) == [10.0 * o.config["x"] for o in history]
    proposal = optimizer.ask(Request(history, np.random.default_rng(0), {}, limits=limits))
    assert proposal.config["x"] <= 0.52


def _observed(config: dict[str, Any], works: bool) -> Observation:
    values = {"latency_ms": 10.0 * config["x"]}
    return Observation(config, "done" if works else "failed", -config["x"] if works else None, values)


@pytest.mark.parametrize("values", [[1.0], {"loss": 1.0}])
def test_values_of_a_failure_are_by_name_and_hold_no_loss(values: Any) -> None:
    with pytest.raises(ValueError, match=r"values|loss"):
        mc.Failed("why", values=values)


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


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_where_the_first_twenty_fail_proposals_stay_spread_and_new(name: str) -> None:
    space = crashing()
    optimizer = make_optimizer(name, space)
    history: list[Observation] = []
    state: Any = {}
    for k in range(34):
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
    if name == "hybrid":
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
