"""What a stopped learning curve is told as: by what whole ones came to from there."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import mipcash as mc
from mipcash.study.pruning import Outlook, expected


def test_ends_that_follow_the_rung_are_told_exactly_and_none_out_of_order() -> None:
    pairs = [(v, 3.0 * v - 1.0) for v in (0.1, 0.4, 0.5, 0.9)]
    assert [expected(v, pairs) for v in (0.1, 0.3, 0.9, 1.2)] == pytest.approx([-0.7, -0.1, 1.7, 2.6])
    assert Outlook.of(pairs).variance == pytest.approx(0.9**2 / 4)  # the least alone lies beyond the others
    outlook = Outlook.of([(0.1, 5.0), (0.4, -2.0), (0.5, 3.0), (0.9, -4.0)])
    told = [outlook(v / 10) for v in range(-3, 13)]
    assert all(b >= a for a, b in itertools.pairwise(told))


def test_halving_tells_the_worst_as_the_worst() -> None:
    """By the difference to the incumbent after one epoch, the worst of all were once told as better than middling ones."""
    space = mc.Space("rates")
    space.real("rate", 1e-4, 1e-1, log=True)

    def train(config: dict[str, Any]) -> Any:
        for epoch in range(1, 21):
            yield (1.0 - config["rate"]) ** epoch
        return (1.0 - config["rate"]) ** 20

    result = mc.minimize(train, space, 20, optimizer="random", pruning="halving", progress=False)
    stopped = [t for t in result.history if not t.whole]
    assert stopped
    for trial in stopped:
        assert trial.loss == pytest.approx((1.0 - trial.config["rate"]) ** 20, abs=0.12)
