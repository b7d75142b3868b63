"""ADMM's updates, apart from any evaluation: signs, residuals, the balance of rho, the order of proposals."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from mipcash.methods.admmbo.settings import AdmmboSettings
from mipcash.methods.admmbo.state import OPT, AdmmState, Asked

SETTINGS = AdmmboSettings(balance=None, tolerance=1e-6)


def test_with_exact_subproblems_it_is_admm_and_finds_the_constrained_minimum() -> None:
    """min ||x - (2, 2)||^2 where x_1 <= 1 and x_1 + x_2 <= 2: (1, 1), as projections solve FEAS exactly."""
    state, rho = AdmmState.begun(2, 2, 0.5, 1.0), 0.5

    def projected(p: np.ndarray) -> np.ndarray:
        over = max(0.0, p[1].sum() - 2.0)
        return np.array([[min(p[0, 0], 1.0), p[0, 1]], p[1] - over / 2.0])

    for _ in range(200):
        centres = state.z - state.y / rho  # eq. 9, first line
        x = (2.0 * np.array([2.0, 2.0]) + rho * centres.sum(axis=0)) / (2.0 + 2.0 * rho)
        state = state.optimised(x)
        state = state.restored(projected(x + state.y / rho), True, SETTINGS)
        if state.converged:
            break
    assert state.converged
    assert state.x == pytest.approx([1.0, 1.0], abs=1e-5)
    assert state.iteration > 5


def test_residuals_are_those_of_the_paper_and_an_answer_that_breaks_a_limit_is_no_end() -> None:
    state = replace(AdmmState.begun(1, 2, 0.1, 1.0), x=np.array([0.3, 0.4]))
    z = np.array([[0.0, 0.4]])
    after = state.restored(z, True, SETTINGS)
    assert after.primal == pytest.approx(0.3)
    assert after.dual == pytest.approx(0.1 * 0.4)
    assert after.y == pytest.approx(np.array([[0.03, 0.0]]))
    again = replace(after, x=z[0]).restored(z, True, SETTINGS)
    assert (again.primal, again.dual, again.converged) == (0.0, 0.0, True)
    assert not replace(after, x=z[0]).restored(z, False, SETTINGS).converged


def test_rho_is_balanced_as_in_eq_15() -> None:
    settings = AdmmboSettings()
    state = replace(AdmmState.begun(1, 1, 0.1, 1.0), x=np.array([1.0]), z=np.array([[0.5]]))
    moved = {z: state.restored(np.array([[z]]), True, settings).rho for z in (0.5, 0.0, 1.0)}
    assert moved == {0.5: 0.2, 0.0: 0.2, 1.0: 0.05}  # r 0.5 and s 0; r 1 and s 0.05; r 0 and s 0.05
    even = replace(state, rho=1.0).restored(np.array([[0.75]]), True, settings)
    assert even.rho == 1.0
    fixed = state.restored(np.array([[0.5]]), True, AdmmboSettings(balance=None))
    assert fixed.rho == 0.1
    for _ in range(200):
        state = replace(state, x=np.array([1.0])).restored(np.array([[0.0]]), True, settings)
    assert state.rho <= 0.1 * 1e8


def test_the_state_goes_through_json() -> None:
    state = AdmmState.begun(2, 3, 0.1, 7.0)
    for each in (
        state,
        state.optimised(np.array([0.1, 0.2, 1.0 / 3.0])).counted(2, 5),
        replace(state, x=np.ones(3)).restored(np.ones((2, 3)) / 3.0, True, SETTINGS),
        AdmmState.begun(0, 3, 0.1, 1.0),
    ):
        back = AdmmState.of(json.loads(json.dumps(each.as_dict())))
        assert back is not None
        assert back.as_dict() == each.as_dict()
        assert back.z.shape == each.z.shape
    assert AdmmState.of({}) is None


def test_feasibility_subproblems_take_turns_and_do_not_wait_for_each_other() -> None:
    state = AdmmState.begun(3, 2, 0.1, 1.0).optimised(np.zeros(2))
    order = []
    for k in range(6):  # nothing is told: all are pending
        order.append(state.next(2))
        state = state.counted(order[-1], k)
    assert order == [1, 2, 3, 1, 2, 3]
    assert not state.solved(2)
    told = replace(state, asked=tuple(a for a in state.asked if a.subproblem != 2))
    assert told.next(2) == 2  # beyond its steps, while the others are waited for
    assert replace(state, asked=()).solved(2)
    assert replace(state, made=(0, 4, 4, 4)).solved(2)  # and not for ever


def test_the_optimality_subproblem_has_its_steps_first() -> None:
    state = AdmmState.begun(2, 2, 0.1, 1.0)
    for k in range(3):
        assert state.next(3) == OPT
        assert not state.solved(3)
        state = state.counted(OPT, k)
    assert not state.solved(3)
    assert replace(state, asked=(Asked(0, 7, OPT),)).solved(3)  # pending since another iteration
