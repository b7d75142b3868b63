"""The gradient of an acquisition's section against differences of its values."""

from __future__ import annotations

import numpy as np
import pytest

from mipcash.acquisition.base import Acquisition
from mipcash.program.points import Points
from tests.acquisition.test_mixed_search import Setting

STEP = 1e-6


def gradient_is_that_of_values(acquisition: Acquisition, setting: Setting, rng: np.random.Generator) -> None:
    """Asserts it at the levels of the first six points, at random numbers."""
    for point in setting.points[:6]:
        levels, z = point.levels, point.one_hot(setting.program)
        u = rng.uniform(0.1, 0.9, size=setting.points.units.shape[1])
        value, gradient = acquisition.section(z)(u)
        around = np.concatenate([u + STEP * np.eye(len(u)), u - STEP * np.eye(len(u)), u[None]])
        values = acquisition.values(Points(np.repeat(levels[None], len(around), axis=0), around))
        assert value == pytest.approx(values[-1], abs=1e-9)
        by_differences = (values[: len(u)] - values[len(u) : -1]) / (2 * STEP)
        assert gradient == pytest.approx(by_differences, rel=1e-4, abs=1e-5)
