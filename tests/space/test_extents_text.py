"""How an extent reads."""

from __future__ import annotations

import mipcash as mc


def test_many_values_are_told_by_the_first_and_the_last() -> None:
    space = mc.Space("wide")
    space.integer("units", 8, 512, step=8)
    space.integer("few", 1, 5)
    bounds = space.bounds()
    assert str(bounds["units"]) == "8, 16, 24, ..., 512 (64 values)"
    assert str(bounds["few"]) == "1, 2, 3, 4, 5"
