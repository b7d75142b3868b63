"""The space of ADMM's tests."""

from __future__ import annotations

import mipcash as mc


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
