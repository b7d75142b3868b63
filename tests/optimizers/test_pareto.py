"""Pareto fronts and hypervolumes against brute force, and scalarisations that reach every point of a front."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mipcash.optimizers.objectives import Objective, Objectives
from mipcash.optimizers.optimizer import Limit, Observation
from mipcash.optimizers.outcome import DONE, FAILED, LOSS, Outcome
from mipcash.optimizers.pareto import hypervolume, on_front, tchebycheff, unit_values
from mipcash.optimizers.scalarising import RENAMED, scalarised, values_of, weights_of

WHOLE = st.integers(2, 5).flatmap(lambda m: st.lists(st.tuples(*[st.integers(0, 5)] * m), min_size=1, max_size=12))


@settings(max_examples=40, deadline=None)
@given(WHOLE)
def test_the_front_has_exactly_the_nondominated_points(rows: list[tuple[int, ...]]) -> None:
    values = np.array(rows, dtype=float)
    kept = on_front(values)
    for k, a in enumerate(values):
        dominated = any((b <= a).all() and (b < a).any() for b in values)
        earlier = any((b == a).all() for b in values[:k])
        assert kept[k] == (not dominated and not earlier)


@settings(max_examples=40, deadline=None)
@given(WHOLE)
def test_the_hypervolume_is_the_number_of_unit_cubes(rows: list[tuple[int, ...]]) -> None:
    """For integer points, the cubes lie below the reference point and have a weakly dominated lower corner."""
    values = np.array(rows, dtype=float)
    m, reference = values.shape[1], np.full(values.shape[1], 4.0)
    corners = np.stack(np.meshgrid(*[np.arange(4)] * m, indexing="ij"), axis=-1).reshape(-1, m)
    counted = sum(bool((values <= corner).all(axis=1).any()) for corner in corners)
    assert hypervolume(values, reference) == pytest.approx(counted)


def test_every_point_of_a_front_is_the_best_by_some_weights() -> None:
    """This includes a nonconvex front, of which weighted sums find only the two ends."""
    angles = np.linspace(np.pi / 12, 5 * np.pi / 12, 9)
    values = np.stack([np.sin(angles), np.cos(angles)], axis=1)
    assert on_front(values).all()
    weights = [np.array([w, 1.0 - w]) for w in np.linspace(0.005, 0.995, 400)]
    assert {int(np.argmin(tchebycheff(unit_values(values, values), w))) for w in weights} == set(range(9))
    assert {int(np.argmin(values @ w)) for w in weights} == {0, 8}


def observed(config: int, **outputs: float) -> Observation:
    objectives = Objectives((Objective("a"), Objective("b", "maximize")))
    outcome = objectives.completed(Outcome.of(None, outputs))
    return Observation({"x": config}, outcome.status(), outcome.loss, outcome.values, outcome)


def test_a_history_with_one_loss_for_several_objectives() -> None:
    objectives = Objectives((Objective("a"), Objective("b", "maximize")))
    history = [observed(0, a=1.0, b=10.0), observed(1, a=3.0, b=30.0), observed(2, a=2.0), observed(3, a=5.0, b=10.0)]
    assert [o.status for o in history] == [DONE, DONE, FAILED, DONE]
    rows, values = values_of(history, objectives)
    assert rows == [0, 1, 3]
    assert values.tolist() == [[1, -10], [3, -30], [5, -10]]
    found, limits = scalarised(
        history, [Limit(LOSS, high=4.0), Limit("b", low=5.0)], objectives, np.array([0.25, 0.75])
    )
    # in unit values, the front is (0, 1) and (1, 0), and the last observation lies at (2, 1)
    expected = [0.75 + 0.05 * 0.75, 0.25 + 0.05 * 0.25, None, 0.75 + 0.05 * 1.25]
    assert [o.loss for o in found] == [pytest.approx(e) if e is not None else None for e in expected]
    assert found[2] is history[2]
    assert [limit.output for limit in limits] == [RENAMED[LOSS], "b"]
    assert found[1].outcome[RENAMED[LOSS]].value == found[1].outcome["a"].value == 3.0
    weights = np.array([weights_of(np.random.default_rng(k), objectives) for k in range(200)])
    assert np.allclose(weights.sum(axis=1), 1.0)
    assert weights.mean(axis=0) == pytest.approx([0.5, 0.5], abs=0.08)
