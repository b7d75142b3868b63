"""Relaxed values of numbers on the unit scale."""

from __future__ import annotations

import numpy as np
import pytest

import mipcash as mc
from mipcash.space.domain import Domain


def test_relaxed_values_run_from_end_to_end_and_have_the_stated_slopes() -> None:
    space = mc.Space("scales")
    ends = {"real": (-3.0, 5.0), "log": (1e-3, 1e2), "steps": (0.5, 2.5), "wide": (-(10**9), 10**9)}
    space.real("real", -3.0, 5.0)
    space.real("log", 1e-3, 1e2, log=True)
    space.real("steps", 0.5, 2.5, step=0.001)
    space.integer("wide", -(10**9), 10**9)
    scale, step = Domain.of(space).scale, 1e-6
    assert set(scale.labels) == set(ends)
    for d, label in enumerate(scale.labels):
        assert [scale.relaxed(d, u) for u in (0.0, 1.0)] == pytest.approx(ends[label])
        for unit in np.linspace(0.1, 0.9, 5):
            slope = (scale.relaxed(d, unit + step) - scale.relaxed(d, unit - step)) / (2 * step)
            assert scale.slope(d, scale.relaxed(d, unit)) == pytest.approx(slope, rel=1e-6)
