"""Black-box limits and failures through the whole loop: learned, kept by the answer, resumed; beside rules that are known."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import mipcash as mc

LIMITS = {"heat": 0.5, "grip": (0.2, None)}


def mixed() -> mc.Space:
    space = mc.Space("limited")
    kind = space.categorical("kind", ["a", "b", "c"])
    space.real("x", 0.0, 1.0)
    n = space.integer("n", 1, 8)
    space.rule("few of a", n <= 8 - 4 * kind["a"])
    return space


def measured(config: dict[str, Any]) -> dict[str, float]:
    """The loss falls towards x = 1 and n = 8, where the heat is 1e6; without limits c with (1, 8) is best."""
    heat = config["x"] + 0.05 * config["n"] - 0.2 * (config["kind"] == "b")
    return {
        "loss": -config["x"] - 0.1 * config["n"] - 0.3 * (config["kind"] == "c"),
        "heat": heat if heat < 1.0 else 1e6 * heat,
        "grip": 1.0 - 0.1 * config["n"],
    }


def kept(values: dict[str, float]) -> bool:
    return values["heat"] <= 0.5 and values["grip"] >= 0.2


def best() -> float:
    space, found = mixed(), math.inf
    for kind in ("a", "b", "c"):
        for n in range(1, 9):
            for x in (k / 1000 for k in range(1001)):
                config = {"kind": kind, "x": x, "n": n}
                values = measured(config)
                if values["loss"] < found and kept(values) and space.is_legal(config):
                    found = values["loss"]
    return found


def test_the_answer_keeps_the_limits_and_is_near_the_best_that_does() -> None:
    space = mixed()
    result = mc.minimize(measured, space, 30, seed=1, limits=LIMITS, progress=False)
    assert all(space.is_legal(t.config) for t in result.history)
    assert result.config is not None
    assert kept(measured(result.config))
    assert best() <= result.value <= best() + 0.02
    ignoring = mc.minimize(measured, space, 30, seed=1, progress=False)
    assert not kept(measured(ignoring.config or {}))


def test_it_starts_where_nothing_keeps_them() -> None:
    space = mixed()
    known = [(c, measured(c)) for c in space.sample(40, 3) if not kept(measured(c))][:10]
    result = mc.minimize(measured, space, 15, seed=0, limits=LIMITS, known=known, progress=False)
    assert result.config is not None
    assert kept(measured(result.config))


def test_while_nothing_keeps_them_there_is_no_answer() -> None:
    result = mc.minimize(measured, mixed(), 12, seed=0, limits={"heat": -5.0}, progress=False)
    assert result.config is None
    assert result.n_done == 12


def crashing(config: dict[str, Any]) -> float:
    if config["x"] > 0.6 or config["kind"] == "b":
        raise mc.Failed("out of memory")
    return -config["x"]


def test_failures_are_learned_and_left_out_of_the_loss() -> None:
    result = mc.minimize(crashing, mixed(), 30, seed=0, progress=False)
    assert result.value == pytest.approx(-0.6, abs=0.01)
    late = result.history[20:]
    assert sum(t.config["kind"] == "b" for t in late) <= 3  # what always fails is left alone


def test_a_run_under_limits_is_resumed_with_the_same_proposals(tmp_path: Path) -> None:
    def settings(name: str) -> dict[str, Any]:
        return {
            "limits": LIMITS,
            "seed": 2,
            "storage": tmp_path / name,
            "progress": False,
            "seconds_per_proposal": None,
        }

    whole = mc.minimize(measured, mixed(), 14, **settings("whole.db"))
    mc.minimize(measured, mixed(), 9, **settings("parts.db"))
    parts = mc.minimize(measured, mixed(), 14, **settings("parts.db"))
    assert [t.config for t in parts.history] == [t.config for t in whole.history]


def test_batches_under_limits_are_distinct_and_legal() -> None:
    space = mixed()
    study = mc.Study(space, limits=LIMITS)
    for _ in range(3):
        batch = study.ask(5)
        assert len({repr(t.config) for t in batch}) == 5
        for trial in batch:
            assert space.is_legal(trial.config)
            study.tell(trial, measured(trial.config))
