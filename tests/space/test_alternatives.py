"""Parameters that are active where one of several conditions holds: ``when=a["x"] | b.is_(2)``."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.errors import SpaceError
from tests.spaces import alternatives


def active(kind: str, depth: int, norm: str | None) -> set[str]:
    """What is active, as Python says it; ``norm`` counts where it is."""
    found = {"kind", "depth", "free"}
    either = kind == "x" or depth == 2
    if either:
        found.add("norm")
    if either and (kind == "y" or norm == "l1" or depth == 0):
        found.add("rate")
    if not (kind == "x" and depth == 2):
        found.add("size")
    return found


def settings() -> list[dict[str, Any]]:
    """Every setting of the lists, with numbers in the middle that keep the rules."""
    made = []
    for kind, depth, norm in itertools.product("xyz", range(3), ("l1", "l2")):
        on = active(kind, depth, norm)
        values = {"kind": kind, "depth": depth, "norm": norm, "rate": 0.3, "size": 50, "free": 0.5}
        made.append({name: value for name, value in values.items() if name in on})
    return [c for k, c in enumerate(made) if c not in made[:k]]


def test_activity_is_what_python_says() -> None:
    space = alternatives()
    for config in settings():
        assert space.validate(config) == [], config
        for name in config.keys() - {"kind", "depth"}:
            assert not space.is_legal({n: v for n, v in config.items() if n != name})
        for name, value in (("norm", "l1"), ("rate", 0.3), ("size", 50)):
            assert name in config or not space.is_legal({**config, name: value})
    assert space.count() == len(settings())
    for config in space.sample(40):
        assert config.keys() == active(config["kind"], config["depth"], config.get("norm"))


def test_optima_nearest_copies_and_words() -> None:
    space = pickle.loads(pickle.dumps(alternatives()))
    assert (
        space["rate"]
        .described()
        .endswith("when (kind is 'x' or depth is 2) and (kind is 'y' or norm is 'l1' or depth is 0)")
    )
    # without the size there is nothing to add but the rate; 1.3 - 2 / 4 with depth 2
    best = space.optimum(space["rate"] + space["norm"]["l1"] + 100 * (1 - space["size"].is_active()), "max")
    assert best.status == "optimal"
    assert best.config is not None
    assert (best.config["kind"], best.config["depth"], best.config["norm"]) == ("x", 2, "l1")
    assert best.value == pytest.approx(100 + 1 + 0.8)
    near = space.nearest({"kind": "z", "depth": 0, "rate": 0.3, "size": 7, "free": 0.1})
    assert near == {"kind": "z", "depth": 0, "size": 7, "free": 0.1}


def test_only_indicators_are_alternatives() -> None:
    space = mc.Space()
    a, b = space.categorical("a", ["x", "y"]), space.real("b", 0, 1)
    with pytest.raises(SpaceError, match=r"not the relation b <= 0.5"):
        space.real("c", 0, 1, when=a["x"] | (b <= 0.5))  # type: ignore[operator]
    assert list(space.parameters) == ["a", "b"]


@pytest.mark.parametrize(
    ("optimizer", "options"),
    [
        ("hybrid", mc.settings.HybridSettings(samples=1, n_initial=4)),
        ("mivabo", mc.settings.MiVaBOSettings(certificate=mc.settings.DecompositionSettings(), n_initial=4)),
        ("admm", None),
    ],
)
def test_proposals_are_legal_and_their_bounds_hold(optimizer: str, options: Any) -> None:
    space = alternatives()

    def loss(config: dict[str, Any]) -> float:
        rate = (config.get("rate", 1.0) - 0.4) ** 2
        return float(rate + config["depth"] / 10 + abs(config.get("size", 1) - 77) / 200 + (config["free"] - 0.2) ** 2)

    result = mc.minimize(loss, space, 6, optimizer=optimizer, settings=options, progress=False)
    for trial in result.history:
        assert space.is_legal(trial.config)
        if trial.proof is not None and trial.proof.config is not None and np.isfinite(trial.proof.bound):
            assert trial.proof.bound <= trial.proof.value + 1e-6
