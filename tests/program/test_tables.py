"""Forms by variable and rules as tables, against every joint state."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mipcash.program.forms import QuadraticForm
from mipcash.program.program import BaseRow
from mipcash.program.rule_tables import States, entries
from mipcash.space.compiled import compiled
from tests.backends.tasks import SPACES


def random_form(n: int, rng: np.random.Generator, terms: int) -> QuadraticForm:
    """Linear terms, products of any two columns, some of them of one variable."""
    linear = np.where(rng.random(n) < 0.5, rng.normal(size=n), 0.0)
    return QuadraticForm(1.5, linear, rng.integers(n, size=terms), rng.integers(n, size=terms), rng.normal(size=terms))


def made(rng: np.random.Generator) -> tuple[States, int]:
    """Three variables over columns in no order, one of them followed by three columns, and two constants; number of columns."""
    order = rng.permutation(7).tolist()
    columns = [np.array(order[:3]), np.array(order[3:4]), np.array(order[4:5])]
    profiles = [rng.normal(size=(3, 4)), rng.normal(size=(1, 3)), rng.normal(size=(1, 2))]
    return States(columns, profiles, {order[5]: 0.7, order[6]: -2.0}), 7


def point(states: States, joint: tuple[int, ...], n: int) -> np.ndarray:
    v = np.full(n, np.nan)
    for columns, profile, s in zip(states.columns, states.profiles, joint, strict=True):
        v[columns] = profile[:, s]
    for c, value in states.constants.items():
        v[c] = value
    return v


@pytest.mark.parametrize("number", range(20))
def test_a_form_by_variable_is_the_form(number: int) -> None:
    rng = np.random.default_rng(number)
    states, n = made(rng)
    form = random_form(n, rng, number)
    split = states.split(form)
    assert set(split.scope) <= {0, 1, 2}
    body = np.broadcast_to(split.over(range(3)), states.sizes)
    row = BaseRow("r", form, -0.5, 1.0, 1e-9)
    legal = states.legal([row, BaseRow("s", form, -np.inf, 0.8, 1e-9)])
    for joint in itertools.product(*map(range, states.sizes)):
        value = form.value(point(states, joint, n))
        assert body[joint] == pytest.approx(value, abs=1e-9)
        assert legal[joint] == (-0.5 - 1e-9 <= value <= 0.8 + 1e-9)
    # what is constant is no function
    assert all(np.ptp(f) > 0.0 for f in split.unary.values())


def test_levels_and_helpers_are_states() -> None:
    """A group's columns are its levels, a helper's the integers between its bounds."""
    program = compiled(SPACES["layers"]()).program
    auxiliary = next(c for c in range(program.n_z, program.n) if program.integer[c])
    states = States.of_levels(program, [1, 0], [auxiliary])
    span = int(program.high[auxiliary] - program.low[auxiliary]) + 1
    assert states.sizes == (program.groups[1].size, program.groups[0].size, span)
    assert entries(states.sizes) == np.prod(states.sizes)
    linear = np.zeros(program.n)
    linear[program.groups[0].start + 1], linear[auxiliary] = 5.0, 1.0
    body = states.split(QuadraticForm(0.0, linear, *np.zeros((2, 0), dtype=np.int64), np.zeros(0))).over(range(3))
    assert body[0, 1, 2] == 5.0 + program.low[auxiliary] + 2.0
