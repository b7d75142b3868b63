"""Checks of an acquisition function: the mixed search improves it, and its gradient agrees with its values."""

from __future__ import annotations

import numpy as np
import pytest

from mipcash.acquisition.acquisition import Acquisition
from mipcash.program.points import Points
from tests.acquisition.test_mixed_search import Setting, value_of

STEP = 1e-6


def search_takes_it(acquisition: Acquisition, setting: Setting) -> None:
    """Assert that the mixed search finds a legal point that is no worse than its starts."""
    found = setting.search().minimise(acquisition, setting.points, np.random.default_rng(0))
    assert found is not None
    assert setting.domain.is_legal(found)
    assert value_of(acquisition, found) <= acquisition.values(setting.points).min() + 1e-9


def gradient_is_that_of_values(
    acquisition: Acquisition, setting: Setting, rng: np.random.Generator, large: bool = False
) -> None:
    """Assert that gradients agree with finite differences at the levels of the first six points and random numbers.

    Args:
        large: allow for the rounding errors that large values leave in differences.
    """
    for point in setting.points[:6]:
        levels, z = point.levels, point.one_hot(setting.program)
        u = rng.uniform(0.1, 0.9, size=setting.points.units.shape[1])
        value, gradient = acquisition.section(z)(u)
        around = np.concatenate([u + STEP * np.eye(len(u)), u - STEP * np.eye(len(u)), u[None]])
        values = acquisition.values(Points(np.repeat(levels[None], len(around), axis=0), around))
        assert value == (pytest.approx(values[-1], rel=1e-9) if large else pytest.approx(values[-1], abs=1e-9))
        by_differences = (values[: len(u)] - values[len(u) : -1]) / (2 * STEP)
        error = 2e-5 * max(1.0, 1e-4 * abs(value)) if large else 1e-5
        assert gradient == pytest.approx(by_differences, rel=1e-4, abs=error)
