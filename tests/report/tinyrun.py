"""Journals of a small run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mipcash as mc


def space() -> mc.Space:
    """Return a space of two parameters and a rule."""
    made = mc.Space("tiny run")
    x = made.real("x", 0.0, 1.0)
    n = made.integer("n", 1, 4)
    made.rule("x or n", x * 4 <= 6 - n)
    return made


def loss(config: dict[str, Any]) -> dict[str, float]:
    """Return the loss of a configuration and a second output."""
    return {"loss": (config["x"] - 0.4) ** 2 + config["n"], "ms": 1.0 + config["n"]}


def started(journal: Path, budget: int) -> mc.Result:
    """Start or resume a run."""
    return mc.minimize(loss, space(), budget, optimizer="random", storage=journal, limits={"ms": 4.0}, progress=False)
