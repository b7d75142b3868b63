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
    at = np.arange(4)
    for unit, end in ((0.0, 0), (1.0, 1)):
        assert scale.relaxed(at, np.full(4, unit))[0] == pytest.approx([ends[label][end] for label in scale.labels])
    for units in np.random.default_rng(0).uniform(0.1, 0.9, (5, 4)):
        slopes = (scale.relaxed(at, units + step)[0] - scale.relaxed(at, units - step)[0]) / (2 * step)
        assert scale.relaxed(at, units)[1] == pytest.approx(slopes, rel=1e-6)
    assert scale.relaxed(at[[2, 0]], np.array([0.5, 0.25]))[0] == pytest.approx(
        [scale.relaxed(at, np.full(4, u))[0][d] for d, u in ((2, 0.5), (0, 0.25))]
    )
