"""What a stopped learning curve is told as: by what whole ones came to from there."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mipcash as mc
from mipcash.study.pruning import Outlook, expected

VALUES = st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=2, max_size=9)


@given(VALUES, st.lists(st.floats(-8, 8), min_size=2, max_size=6))
def test_what_is_worse_at_the_rung_is_told_no_better(pairs: list[tuple[float, float]], at: list[float]) -> None:
    outlook = Outlook.of(pairs)
    told = [outlook(v) for v in sorted(at)]
    assert all(b >= a - 1e-9 * max(1.0, abs(a)) for a, b in itertools.pairwise(told))
    assert outlook.variance >= 0.0
    assert np.isfinite(told).all()


def test_ends_that_follow_the_rung_are_told_exactly() -> None:
    pairs = [(v, 3.0 * v - 1.0) for v in (0.1, 0.4, 0.5, 0.9)]
    assert [expected(v, pairs) for v in (0.1, 0.3, 0.9, 1.2)] == pytest.approx([-0.7, -0.1, 1.7, 2.6])
    assert Outlook.of(pairs).variance == pytest.approx(0.9**2 / 4)  # the least alone lies beyond the others


def test_halving_tells_the_worst_as_the_worst() -> None:
    """By the difference to the incumbent after one epoch, the worst of all were once told as better than middling ones."""
    space = mc.Space("rates")
    space.real("rate", 1e-4, 1e-1, log=True)

    def train(config: dict[str, Any]) -> Any:
        for epoch in range(1, 21):
            yield (1.0 - config["rate"]) ** epoch
        return (1.0 - config["rate"]) ** 20

    result = mc.minimize(train, space, 20, seed=0, pruning="halving", progress=False)
    stopped = [t for t in result.history if not t.whole]
    assert stopped
    for trial in stopped:
        assert trial.loss == pytest.approx((1.0 - trial.config["rate"]) ** 20, abs=0.12)
