"""Descents without last digits: the same path on every processor, and nothing else lost."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from mipcash.deadline import Deadline
from mipcash.program.forms import Vector
from mipcash.surrogates.maximum import steady
from mipcash.surrogates.protocols import Section


def shaken(rng: np.random.Generator) -> Section:
    """Return Rosenbrock's function of eight numbers with other last digits at each evaluation, as processors have them."""

    def at(u: Vector) -> tuple[float, Vector]:
        value, gradient = rosen(4.0 * u - 2.0), 4.0 * rosen_der(4.0 * u - 2.0)
        return float(value * (1.0 + 1e-15 * rng.normal())), gradient * (1.0 + 1e-15 * rng.normal(size=len(u)))

    return at


def ends(made: Callable[[Section], Section]) -> list[list[float]]:
    """Return the end of a descent over each of five shaken functions."""
    objectives = [made(shaken(np.random.default_rng(seed))) for seed in range(5)]
    found = [minimize(f, np.full(8, 0.1), jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * 8) for f in objectives]
    return [f.x.tolist() for f in found]


def test_descents_end_at_the_same_point_whatever_the_last_digits_are() -> None:
    first, *others = ends(steady)
    assert all(end == first for end in others)
    bare, *others = ends(lambda f: f)
    assert not any(end == bare for end in others)


@pytest.mark.parametrize("value", [-3e300, -1.25, 0.0, 7e-320, math.inf])
@pytest.mark.parametrize("slope", [[0.0, 0.0], [1e308, -1.0], [3e-320, 2.0], [-1e-12, 1e-9]])
def test_a_steady_function_differs_in_its_last_digits_alone(value: float, slope: list[float]) -> None:
    given = np.array(slope)
    seen, gradient = steady(lambda u: (value, given))(np.zeros(2))
    assert seen == pytest.approx(value, rel=1e-11, abs=0.0)
    assert np.all(np.abs(gradient - given) <= 1e-8 * np.maximum(np.abs(given), np.max(np.abs(given)) / 4096))
    late = steady(lambda u: (float(u[0]), given), Deadline.after(0.0))
    assert late(np.array([2.0, 0.0]))[0] == 2.0  # the first value is needed
    again = late(np.array([1.0, 0.0]))
    assert again[0] == 2.0
    assert not again[1].any()
