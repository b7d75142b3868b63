"""The warp of the losses: increasing, invertible, and the evidence's Jacobian."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mipcash.surrogates.structured.warping import STRENGTHS, Warp

LOSSES = st.lists(st.floats(-1e6, 1e6, allow_nan=False), min_size=3, max_size=30).filter(
    lambda v: max(v) - min(v) > 1e-3
)


@given(LOSSES, st.sampled_from(STRENGTHS))
def test_it_standardises_keeps_the_order_and_can_be_undone(values: list[float], strength: float) -> None:
    losses = np.sort(np.array(values))
    warp = Warp.of(losses, strength)
    warped = warp(losses)
    assert np.all(np.diff(warped) >= 0)
    assert abs(warped.mean()) < 1e-6
    assert warped.std() == pytest.approx(1.0, abs=1e-6)
    back = np.array([warp.inverse(v) for v in warped])
    np.testing.assert_allclose(back, losses, rtol=1e-6, atol=1e-6 * (losses[-1] - losses[0]))


@pytest.mark.parametrize("strength", STRENGTHS)
def test_the_jacobian_agrees_with_finite_differences(strength: float) -> None:
    losses = np.random.default_rng(0).lognormal(size=20)
    warp, step = Warp.of(losses, strength), 1e-7
    slopes = (warp(losses + step) - warp(losses - step)) / (2 * step)
    expected = np.sum(np.log(slopes)) + len(losses) * np.log(warp.unit)
    assert warp.log_jacobian(losses) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    "losses", [np.full(5, 3.0), np.zeros(4), np.array([1e300, 1e300, -1e300, 2e299]), np.array([7.0])]
)
def test_constant_and_huge_losses_stay_finite(losses: np.ndarray) -> None:
    for strength in STRENGTHS:
        warp = Warp.of(losses, strength)
        assert np.all(np.isfinite(warp(losses)))
        assert np.isfinite(warp.inverse(0.0))
