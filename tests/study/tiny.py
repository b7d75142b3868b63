"""Small space and small optimizers with predictable proposals. Subprocesses import this module too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import mipcash as mc
from mipcash.backends.task import OPTIMAL
from mipcash.errors import SpaceExhaustedError
from mipcash.optimizers.optimizer import History, Optimizer, Proposal, Request
from mipcash.space.solution import Solution


def tiny_space(cap: float = 10.0, name: str = "tiny") -> mc.Space:
    """Return a space with every kind of value that a journal must restore.

    These are None, True, a tuple, floats, a wide integer and an order.
    """
    space = mc.Space(name)
    layers = space.integer("layers", 0, 4)
    space.real("lr", 1e-4, 1e-1, log=True)
    space.integer("rounds", 3, 5000)
    space.categorical("act", [None, True, 1, ("relu", 2), "selu"])
    space.ordinal("width", [8, 16, 32])
    a = space.module("scale", {"none": {}, "standard": {"eps": mc.Real(0.0, 1.0)}})
    b = space.module("select", {"all": {}, "best": {"k": mc.Integer(1, 9)}})
    space.ordering("order", [a, b])
    space.rule("layers are capped", layers <= cap)
    return space


def draw(space: mc.Space, rng: np.random.Generator) -> dict[str, Any]:
    """Return a random legal configuration of ``tiny_space``."""
    config: dict[str, Any] = {}
    for label, parameter in space.parameters.items():
        head = label.split(".")
        if len(head) == 3 and config[head[0]] != head[1]:
            continue
        domain = parameter.domain
        if hasattr(domain, "members"):
            config[label] = tuple(rng.permutation(np.array(domain.members)).tolist())
        elif domain.kind in ("categorical", "ordinal"):
            config[label] = domain.values[int(rng.integers(len(domain.values)))]
        else:
            config[label] = domain.from_unit(rng.random())
    return config


def known(space: mc.Space, n: int) -> list[tuple[dict[str, Any], float]]:
    """Return ``n`` known evaluations: configurations with their losses."""
    rng = np.random.default_rng(3)
    return [(c, loss(c)) for c in (draw(space, rng) for _ in range(n))]


class Sampler(Optimizer):
    """Optimizer that draws at random. The learning rate depends on every earlier outcome, as with a surrogate."""

    name = "sampler"

    def __init__(self, space: mc.Space, settings: Mapping[str, Any] | None = None) -> None:
        self.space = space
        self.settings = settings
        self.histories: list[History] = []

    def propose(self, request: Request) -> Proposal:
        history, rng = request.history, request.rng
        self.histories.append(history)
        config = draw(self.space, rng)
        known = sum(o.loss or 0.1 for o in history) + 0.01 * len(history)
        config["lr"] = self.space.parameters["lr"].domain.from_unit((float(rng.random()) + known) % 1.0)
        solution = Solution(config, 1.0 / 3.0, 0.25, 0.25, OPTIMAL, 0.5, "highs")
        return Proposal(config, solution, "acquisition", {"mip": 0.5}, {})


class Counter(Sampler):
    """Optimizer that keeps a counter and the sum of its draws in its state, and proposes from them."""

    name = "counter"

    def propose(self, request: Request) -> Proposal:
        rng, state = request.rng, request.state
        count, total = state.get("count", 0), state.get("total", 0.0)
        proposal = super().propose(request)
        total += float(rng.random())
        config = {**proposal.config, "rounds": 3 + (17 * count + int(1000 * total)) % 4000}
        return Proposal(config, None, f"step {count}", {}, {"count": count + 1, "total": total, "seen": (1, 2)})


class Finite(Sampler):
    """Optimizer that reports an exhausted space after three proposals."""

    name = "finite"

    def propose(self, request: Request) -> Proposal:
        if len(request.history) == 3:
            raise SpaceExhaustedError("all 3 legal configurations have been proposed; nothing is left")
        return super().propose(request)


def loss(config: Mapping[str, Any]) -> float:
    return (config["layers"] - 2) ** 2 + abs(config["lr"] - 0.01) + 1e-4 * config["rounds"]


def line() -> mc.Space:
    space = mc.Space("line")
    space.real("x", 0.0, 1.0)
    return space
