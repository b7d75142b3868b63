"""Regions about an incumbent: what refines it, what copies its numbers, and what a category is visited with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.acquisition.blocks import blocks_of
from mipcash.optimizers.refining import Copies, Fresh, Inside, Outside, Refinements
from mipcash.program.points import Points
from mipcash.space.domain import Domain


def mixed() -> Domain:
    s = mc.Space("mixed")
    s.categorical("kind", ["a", "b", "c"])
    s.real("x", 0, 10)
    s.real("y", 0, 10)
    s.integer("n", 0, 40)
    s.ordinal("size", [1, 2, 4, 8])
    s.module("model", {"m": {"lr": mc.Real(0, 1)}, "k": {}})
    return Domain.of(s)


INCUMBENT: dict[str, Any] = {"kind": "a", "x": 4.0, "y": 6.0, "n": 20, "size": 2, "model": "m", "model.m.lr": 0.5}
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "a small step": ({"x": 4.4, "n": 21}, "refinement"),
    "a step of one number too far": ({"x": 4.6}, ""),
    "a level further of four": ({"size": 4}, ""),
    "another category, all copied": ({"kind": "b"}, "copy"),
    "copied, or at ends": ({"kind": "b", "x": 0.0, "y": 10.0, "n": 40, "size": 8}, "copy"),
    "one number of its own": ({"kind": "b", "x": 7.0}, "visit"),
    "all numbers its own and inside": (
        {"kind": "b", "x": 7.0, "y": 3.0, "n": 9, "size": 4, "model.m.lr": 0.2},
        "fresh",
    ),
    "the same beside a third category": (
        {"kind": "c", "x": 7.0, "y": 3.0, "n": 9, "size": 4, "model.m.lr": 0.2},
        "visit",
    ),
    "another algorithm with the other numbers": ({"kind": "b", "model": "k"}, ""),
}


@pytest.mark.parametrize("case", CASES)
def test_points_are_where_they_are_said_to_be(case: str) -> None:
    domain, (changes, kind) = mixed(), CASES[case]
    config = INCUMBENT | changes
    if config["model"] == "k":
        del config["model.m.lr"]
    point, centre = domain.encode([config]), domain.encode([INCUMBENT])[0]
    copies = Copies(domain.program, domain.scale, blocks_of(domain), centre)
    group = next(g for g, each in enumerate(domain.program.groups) if each.label == "kind")
    found = {
        "refinement": Refinements(domain.program, centre).holds(point)[0],
        "copy": copies.holds(point)[0],
        "fresh": Fresh(copies, group, 1).holds(point)[0],
        "visit": copies.visits(point)[0],
    }
    wanted = {"copy": {"copy", "visit"}, "fresh": {"fresh", "visit"}}.get(kind, {kind} - {""})
    assert {name for name, there in found.items() if there} == wanted


class Flat:
    """An acquisition function of one value."""

    def values(self, points: Points) -> np.ndarray:
        return np.ones(len(points))

    def section(self, z: np.ndarray) -> Any:
        return lambda u: (1.0, np.zeros(len(u)))


def test_a_region_is_left_out_or_is_all_there_is() -> None:
    domain = mixed()
    points = domain.encode([INCUMBENT, INCUMBENT | {"x": 9.0}])
    region = Refinements(domain.program, points[0])
    np.testing.assert_array_equal(Outside(Flat(), region).values(points), [np.inf, 1.0])
    np.testing.assert_array_equal(Inside(Flat(), region).values(points), [1.0, np.inf])
