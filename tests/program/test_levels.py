"""Levels and unit-scaled variables of batches of points; quadratic forms and rules as tables over joint levels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mipcash as mc
from mipcash.program import affine_rows
from mipcash.program.forms import QuadraticForm
from mipcash.program.legality import legality_at
from mipcash.program.points import Points
from mipcash.program.program import BaseRow
from mipcash.program.rule_tables import States
from mipcash.space.domain import Domain
from tests.spaces import conv_net


def test_batches_of_points_are_indexed_joined_and_encoded_row_by_row() -> None:
    domain = Domain.of(conv_net())
    points = domain.encode(domain.sample(5, np.random.default_rng(0)))
    z = points.one_hot(domain.program)
    for k, point in enumerate(points):
        assert np.array_equal(point.one_hot(domain.program), z[k])
        assert np.array_equal(domain.program.levels_of(z[k]), point.levels)
    for rows in (slice(1, None), [1, 2], np.array([False, True, True, False, False]), []):
        assert np.array_equal(points[rows].levels, points.levels[rows])
        assert np.array_equal(points[rows].units, points.units[rows])
    shape = points.levels.shape[1], points.units.shape[1]
    for again in (Points.of(list(points), *shape), Points.joined(points[:1], points[1:])):
        assert np.array_equal(again.levels, points.levels)
        assert np.array_equal(again.units, points.units)
    assert Points.of([], *shape).levels.shape == (0, shape[0])
    with pytest.raises(ValueError, match="do not go together"):
        Points(np.zeros((2, 3), dtype=np.int64), np.zeros((1, 2)))


def test_rounding_a_batch_of_integers_agrees_with_rounding_one_by_one() -> None:
    space = mc.Space("integers")
    domains = [mc.Integer(-70, 900, 7), mc.Integer(1, 2000, log=True), mc.Integer(3, 10**6, log=True)]
    space.module("kind", {"a": {f"n{k}": d for k, d in enumerate(domains)} | {"x": mc.Real(0.0, 1.0)}, "b": {}})
    scale, rng = Domain.of(space).scale, np.random.default_rng(0)
    units = rng.uniform(-0.1, 1.1, (300, len(scale)))
    rounded = scale.rounded(units)
    for d, domain in enumerate(scale.domains):
        one_by_one = [domain.to_unit(domain.from_unit(u)) for u in units[:, d]]
        expected = units[:, d] if isinstance(domain, mc.Real) else one_by_one
        assert np.allclose(rounded[:, d], expected, rtol=0.0, atol=1e-15)
    assert np.array_equal(scale.rounded(units[0]), rounded[0])


@pytest.mark.parametrize("number", range(5))
def test_a_form_split_by_variables_agrees_with_the_form(number: int) -> None:
    """The states have three variables over shuffled columns, one of them over three columns, and two constants."""
    rng, n = np.random.default_rng(number), 7
    order = rng.permutation(n).tolist()
    columns = [np.array(order[:3]), np.array(order[3:4]), np.array(order[4:5])]
    profiles = [rng.normal(size=(3, 4)), rng.normal(size=(1, 3)), rng.normal(size=(1, 2))]
    states = States(columns, profiles, {order[5]: 0.7, order[6]: -2.0})
    linear, terms = np.where(rng.random(n) < 0.5, rng.normal(size=n), 0.0), 4 * number
    form = QuadraticForm(1.5, linear, rng.integers(n, size=terms), rng.integers(n, size=terms), rng.normal(size=terms))
    split = states.split(form)
    assert set(split.scope) <= {0, 1, 2}
    assert all(np.ptp(f) > 0.0 for f in split.unary.values())  # constant functions are left out
    body = np.broadcast_to(split.over(range(3)), states.sizes)
    legal = states.legal([BaseRow("r", form, -0.5, 1.0, 1e-9), BaseRow("s", form, -np.inf, 0.8, 1e-9)])
    for joint in itertools.product(*map(range, states.sizes)):
        v = np.zeros(n)
        v[order[5:]] = 0.7, -2.0
        for at, profile, s in zip(columns, profiles, joint, strict=True):
            v[at] = profile[:, s]
        assert body[joint] == pytest.approx(form.value(v), abs=1e-9)
        assert legal[joint] == (-0.5 - 1e-9 <= form.value(v) <= 0.8 + 1e-9)


def test_many_rows_over_numbers_are_decided_together_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    space, rng = mc.Space("rows"), np.random.default_rng(5)
    x = [space.real(f"x{i}", -1, 2) for i in range(3)]
    c = [space.categorical(f"c{i}", ["a", "b", "c"]) for i in range(3)]
    for k in range(24):
        i, j, l = rng.integers(3, size=3)
        low, v = float(rng.normal()), "abc"[k % 3]
        if k % 2:
            space.rule(f"r{k}", x[i] + 0.5 * x[j] <= 1.5 + low, when=c[l][v])
        else:
            space.rule(f"r{k}", 2.0 * x[i] + c[l].is_(v) - c[j].is_("a") >= -3.0 + low)
    program = Domain.of(space).program
    levels = np.array(list(itertools.product(range(3), repeat=3)))
    values = [{f"x{i}": float(v) for i, v in enumerate(u)} for u in rng.uniform(-1, 2, size=(30, 3))]
    apart = [legality_at(program, v).check(levels) for v in values]
    monkeypatch.setattr(affine_rows, "MANY", 0)
    program.derived.clear()
    assert affine_rows.affine_block(program) is not None
    together = [legality_at(program, v).check(levels) for v in values]
    assert np.array_equal(apart, together)
    assert 0 < np.sum(apart) < np.size(apart)
    legal = [space.is_legal(v | {f"c{i}": "abc"[l] for i, l in enumerate(ls)}) for v in values for ls in levels]
    assert np.array_equal(np.ravel(together), legal)
