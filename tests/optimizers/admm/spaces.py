"""Spaces of ADMM's tests, and ways to look at them whole."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import mipcash as mc
from mipcash.methods.admm.legal import LegalChoices, Projection
from mipcash.methods.admm.variables import Variables
from mipcash.space.domain import Domain


def pipeline(order: bool = False) -> mc.Space:
    """Two modules with hyperparameters of every kind, rules on choices and on numbers."""
    space = mc.Space("pipeline")
    scaler = space.module(
        "scaler", {"none": {}, "bins": {"n": mc.Integer(2, 6)}, "power": {"how": mc.Categorical(list("abc"))}}
    )
    model = space.module(
        "model",
        {
            "tree": {"depth": mc.Integer(1, 5), "leaf": mc.Ordinal([1, 2, 5])},
            "linear": {"c": mc.Real(0.01, 10.0, log=True)},
            "wide": {"units": mc.Integer(1, 500)},
        },
    )
    space.rule("no bins before linear", scaler["bins"] + model["linear"] <= 1)
    space.rule("bins and depth", scaler["bins"]["n"] + model["tree"]["depth"] <= 7)
    if order:
        chosen = space.ordering("order", [scaler, model])
        space.rule("scale first", chosen.position(scaler) <= chosen.position(model) + 1)
    return space


def parts(space: mc.Space) -> tuple[Domain, Variables, Projection]:
    domain = Domain.of(space)
    variables = Variables.of(domain)
    return domain, variables, Projection(domain, variables)


def oracle(space: mc.Space) -> tuple[Variables, LegalChoices]:
    domain, variables, project = parts(space)
    return variables, LegalChoices(domain, variables, project, np.full(variables.size, 0.5))


def drawn(seed: int) -> mc.Space:
    """A small discrete space: modules, plain categories, integers, an order sometimes, and rules that bind them."""
    rng = np.random.default_rng(seed)
    space = mc.Space(f"drawn {seed}")
    first = space.module("first", {"a": {"n": mc.Integer(0, 3)}, "b": {"k": mc.Categorical(list("xyz"))}, "c": {}})
    second = space.categorical("second", ["p", "q", "r"][: int(rng.integers(2, 4))])
    m, n = space.integer("m", 0, 3), space.ordinal("n", [1, 2, 4])
    if rng.random() < 0.5:
        other = space.module("other", {"u": {}, "v": {"w": mc.Integer(1, 2)}}, when=second["p"])
        if rng.random() < 0.5:
            space.rule("u needs c", other["u"] <= first["c"])
    if rng.random() < 0.5:
        space.ordering("order", [first, second])
    space.rule("sum", m + n + first["a"]["n"] <= int(rng.integers(3, 7)))
    space.rule("apart", first["a"] + second["q"] <= 1)
    if rng.random() < 0.5:
        space.rule("equal", m >= 2, when=first["b"])
    return space


def every(space: mc.Space) -> list[dict[str, Any]]:
    """All legal configurations of a drawn space, by trying all that is active."""
    found: list[dict[str, Any]] = [{}]
    for name, parameter in space.parameters.items():
        domain = parameter.domain
        values = list(domain.values) if hasattr(domain, "values") else list(itertools.permutations(domain.members))
        found = [
            c | {name: v} if on else c for c in found for on in (_is_active(name, c),) for v in (values if on else [0])
        ]
    return [config for config in found if space.is_legal(config)]


def _is_active(name: str, config: dict[str, Any]) -> bool:
    module, *rest = name.split(".")
    return config.get(module) == rest[0] if rest else name != "other" or config["second"] == "p"
