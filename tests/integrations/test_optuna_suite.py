"""Optuna's own suite of samplers.

All of it that is about one objective. ``MultiObjectiveSamplerTestCase`` does not apply: several objectives are refused, which
``SingleOnlySamplerTestCase`` holds us to.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("optuna", minversion="5")

from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase

from mipcash.integrations.optuna import MipcashSampler


class TestMipcashSampler(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: MipcashSampler(seed=0)
