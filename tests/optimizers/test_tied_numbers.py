"""Where rules tie numbers to levels, no level can move alone: the search must move both."""

from __future__ import annotations

from typing import Any

import numpy as np

import mipcash as mc

NAMES = "ABCDEF"
STRENGTH = np.array([1.0, 1.4, 0.8, 1.1, 1.6, 0.3])


def mixture() -> mc.Space:
    """Shares that sum to one, at least a tenth of each that is used, at most three used."""
    space = mc.Space("mixture")
    share = [space.real(n, 0.0, 1.0) for n in NAMES]
    used = [space.integer(f"uses {n}", 0, 1) for n in NAMES]
    space.rule("whole", sum(share) == 1)
    space.rule("few", sum(used) <= 3)
    for n, s, u in zip(NAMES, share, used, strict=True):
        space.rule(f"{n} only if used", s <= u)
        space.rule(f"a tenth of {n}", s >= 0.1 * u)
    return space


def objective(config: dict[str, Any]) -> float:
    s = np.array([config[n] for n in NAMES])
    return -float(STRENGTH @ s + 4.0 * s[1] * s[4] + 2.5 * s[4] * s[5])


def test_the_choice_of_ingredients_changes_with_their_shares() -> None:
    """B and E are the best pair, at -2.5025; the search once stayed with the ingredients of its first good mixture."""
    result = mc.minimize(objective, mixture(), 24, seed=0, progress=False)
    assert result.value < -2.5
    assert len({tuple(n for n in NAMES if t.config[n] > 0) for t in result.history[6:]}) > 1
