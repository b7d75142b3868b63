"""``Space.nearest`` against brute force: only what must change is changed, whatever the ranges of the numbers are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mipcash as mc

TINY, NORMAL = (1e-12, 1e-10, 3e-9), (1e-2, 1.0, 1e3, 1e5)
"""Widths of the ranges of reals; the tiny ones are within what a rule may be missed by."""


@pytest.mark.parametrize("seed", range(2))
def test_levels_beside_numbers(seed: int) -> None:
    """A category and an ordinal that need not change keep their values beside tiny, huge and single ranges."""
    rng = np.random.default_rng(100 + seed)
    tiny, huge = (float(s) for s in rng.choice([1e-12, 1e-9, 1e-8]) * np.array([1.0, 1e17]))
    space = mc.Space(expand_limit=0)
    kind, size = space.categorical("kind", ["a", "b", "c"]), space.ordinal("size", [1, 2, 3, 4])
    x, y = space.real("x", -tiny, tiny), space.real("y", 0, huge)
    one = space.integer("one", 3, 3)
    k = space.integer("k", 0, 4)
    space.rule("size and k", size + k + one <= 6)
    space.rule("not a", x + 2 * kind["a"] <= 1.5)
    space.rule("beside", y / huge + kind["b"] <= 1.2)
    for _ in range(4):
        given = {
            "kind": str(rng.choice(["a", "b", "c"])),
            "size": int(rng.integers(1, 5)),
            "x": float(rng.uniform(-tiny, tiny)),
            "y": float(rng.uniform(0, huge)),
            "one": int(rng.integers(2, 5)),
            "k": int(rng.integers(0, 5)),
        }
        found = space.nearest(given)
        best = min(
            (given["kind"] != c)
            + abs(given["size"] - s) / 3
            + abs(given["k"] - i) / 4
            + max(0.0, given["y"] / huge + (c == "b") - 1.2)
            for c, s, i in itertools.product("bc", range(1, 5), range(5))
            if s + i + 3 <= 6
        )
        distance = (
            (given["kind"] != found["kind"])
            + abs(given["size"] - found["size"]) / 3
            + abs(given["k"] - found["k"]) / 4
            + abs(given["y"] - found["y"]) / huge
        )
        assert space.is_legal(found)
        assert distance == pytest.approx(best, abs=1e-5)
        assert (found["one"], found["x"]) == (3, given["x"])


def test_a_number_far_outside_of_its_range_counts_as_the_nearest_value() -> None:
    space = mc.Space()
    x, kind = space.real("x", 0, 1), space.categorical("kind", ["a", "b"])
    space.rule("r", x + kind["a"] <= 1.25)
    found = space.nearest({"x": 1e30, "kind": "a"})
    assert found == {"x": pytest.approx(0.25), "kind": "a"}
    assert space.nearest({"x": -1e30, "kind": "a"}) == {"x": 0.0, "kind": "a"}
