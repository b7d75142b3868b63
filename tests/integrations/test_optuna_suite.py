"""Optuna's own test suite of samplers, for one objective and for several."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

pytest.importorskip("optuna", minversion="5")

from optuna.distributions import FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    MultiObjectiveSamplerTestCase,
    RelativeSamplerTestCase,
)

from mipcash.integrations.optuna import MipcashSampler

RANGES = [
    FloatDistribution(-1.0, 1.0),
    FloatDistribution(1e-7, 1.0, log=True),
    FloatDistribution(-10, 10, step=0.5),
    IntDistribution(3, 10),
    IntDistribution(1, 100, log=True),
    IntDistribution(3, 9, step=2),
]


class TestMipcashSampler(BasicSamplerTestCase, RelativeSamplerTestCase, MultiObjectiveSamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: MipcashSampler(seed=0)

    @pytest.mark.parametrize(("x", "y"), list(pairwise(RANGES)))
    def test_sample_relative_numerical(self, sampler: Callable[[], BaseSampler], x: Any, y: Any) -> None:
        """Test each range in two pairs only. All pairs of the suite would take a minute."""
        super().test_sample_relative_numerical(sampler, x, y)
