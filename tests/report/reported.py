"""Small runs for tests of reports: every kind of space and history, created without waiting."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import mipcash as mc
from mipcash.optimizers.optimizer import Limit
from mipcash.study.result import Result

EVIL = "<script>alert(1)</script>\"'&</style></title>"
"""Name that would run a script or close its element if it were not escaped."""


def told(space: mc.Space, losses: Iterable[Any], limits: tuple[Limit, ...] = (), direction: str = "minimize") -> Result:
    """Return a result with trials sampled from a space and the given outcomes. None leaves a trial pending."""
    outcomes = list(losses)
    given = {limit.output: (limit.low, limit.high) for limit in limits}
    study = mc.Study(space, "random", seed=0, limits=given or None, direction=direction)
    for outcome in outcomes:
        trial = study.ask()
        if outcome is not None:
            study.tell(trial, outcome(trial.config) if callable(outcome) else outcome)
    return study.result


def plain() -> mc.Space:
    """Return a space with real, integer and listed parameters, a log scale and a rule."""
    space = mc.Space("plain")
    x = space.real("x", 0.0, 1.0)
    space.real("rate", 1e-5, 1e-1, log=True)
    n = space.integer("n", 1, 6)
    space.categorical("kind", ["a", "b", "c"])
    space.rule("x small where n is large", x * 6 <= 7 - n)
    return space


def categories() -> mc.Space:
    """Return a space of categories only; one of them has a malicious name."""
    space = mc.Space("categories " + EVIL)
    space.categorical("c " + EVIL, [EVIL, "b", None, True])
    space.categorical("d", ["p", "q"])
    return space


def conditional() -> mc.Space:
    """Return a space of algorithms with hyperparameters and an ordering."""
    space = mc.Space("conditional")
    scaler = space.module("scaler", {"none": {}, "range": {"low": mc.Real(0.0, 1.0)}})
    learner = space.module(
        "learner", {"tree": {"depth": mc.Integer(1, 9)}, "line": {"c": mc.Real(1e-3, 1e3, log=True)}}
    )
    space.ordering("order", [scaler, learner])
    space.rule("no line without a scaler", learner["line"] <= scaler["range"])
    return space


def many() -> mc.Space:
    """Return a space of 92 parameters."""
    space = mc.Space("many")
    for k in range(46):
        space.real(f"x{k}", 0.0, 1.0)
        space.categorical(f"c{k}", ["a", "b", "c"])
    return space


def loss(config: dict[str, Any]) -> float:
    """Return a smooth loss for any configuration."""
    total = 0.0
    for k, value in enumerate(config.values()):
        total += (float(value) - 0.3) ** 2 if isinstance(value, (int, float)) else len(str(value)) * 0.1 + 0.01 * k
    return total


def timed(config: dict[str, Any]) -> dict[str, Any]:
    """Return several outputs beside the loss, of which one is a text."""
    return {"loss": loss(config), "ms": 1.0 + config["x"], "mb " + EVIL: config["n"] * 2.0, "said": EVIL}


_MADE: dict[str, Callable[[], Result]] = {
    "nothing": lambda: told(plain(), []),
    "one": lambda: told(plain(), [1.0]),
    "two": lambda: told(plain(), [1.0, 2.0]),
    "open": lambda: told(plain(), [None]),
    "failed": lambda: told(plain(), [mc.Failed(EVIL)] * 3),
    "equal": lambda: told(plain(), [1.0] * 8),
    "astronomic": lambda: told(plain(), [1e40, 2e40, 1.5e40, 1e41, 3e40, 5e41]),
    "huge": lambda: told(plain(), [1e99, -1e99, 1.0, 2.0, 3.0, 1e-300]),
    "some": lambda: told(plain(), [*[loss] * 12, mc.Failed("out of memory"), None]),
    "limits": lambda: told(plain(), [timed] * 14, (Limit("ms", high=1.5), Limit("mb " + EVIL, low=3.0, high=9.0))),
    "maximised": lambda: told(plain(), [*[timed] * 9, {"loss": -1e9, "ms": 1.0}], (Limit("ms", high=1.5),), "maximize"),
    "several": lambda: mc.minimize(
        lambda c: {"a " + EVIL: (c["x"] - 0.3) ** 2 + c["n"], "b": c["x"] + 1.0 / c["n"]},
        plain(),
        9,
        direction={"a " + EVIL: "minimize", "b": "maximize"},
        optimizer="random",
        progress=False,
    ),
    "no limit kept": lambda: told(plain(), [timed] * 6, (Limit("ms", high=0.1),)),
    "never told": lambda: told(plain(), [loss] * 5, (Limit("ms", high=0.1),)),
    "categories": lambda: told(categories(), [loss] * 7),
    "conditional": lambda: told(conditional(), [loss] * 16),
    "many": lambda: told(many(), [loss] * 12),
    "infinite": lambda: told(plain(), [math.inf, math.nan, mc.Failed("no")]),
}


RUNS: dict[str, Callable[[], Result]] = {name: cache(make) for name, make in _MADE.items()}
"""Cached runs by name."""
