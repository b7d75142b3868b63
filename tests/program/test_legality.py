"""Rows over many level vectors at once, against one evaluation per row and point."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_

import numpy as np
import pytest

import mipcash as mc
from mipcash.program import legality
from mipcash.program.forms import QuadraticForm
from mipcash.program.legality import Legality, _Rows, group_activity
from mipcash.program.program import BaseRow
from mipcash.space.compiled import compiled


@pytest.mark.parametrize("count", [4, legality.MANY + 20])
@pytest.mark.parametrize("products", [0, 2, 30])
@pytest.mark.parametrize("filled", [0.03, 0.8])
def test_rows_with_one_or_two_bounds_are_evaluated_as_forms(count: int, products: int, filled: float) -> None:
    """In dense and sparse storage, of linear terms and of products."""
    rng, n, edge = np.random.default_rng(count + products), 12, 0.1 if count < legality.MANY else 0.002
    points = (rng.random((60, n)) < 0.4).astype(float)
    rows = []
    for r in range(count):
        linear = np.append(
            np.where(rng.random(n) < filled, rng.integers(-3, 4, n), 0), 7.0
        )  # the last one is no binary
        pairs = rng.integers(0, n, (2, products))
        form = QuadraticForm(0.0, linear.astype(float), *pairs, rng.integers(1, 4, products) * rng.choice([-1.0, 1.0]))
        bodies = [form.value(np.append(z, 0.0)) for z in points]
        low, high = float(np.quantile(bodies, edge)), float(np.quantile(bodies, 1.0 - edge))
        slack = float(rng.choice([1e-9, 0.3]))
        rows.append(BaseRow(f"r{r}", form, low if r % 3 else -np.inf, high if (r + 1) % 3 else np.inf, slack))
    wanted = np.array([all(bool(r.holds(np.array(r.form.value(np.append(z, 0.0))))) for r in rows) for z in points])
    found = _Rows.of(rows, n)
    assert np.array_equal(found.hold(points), wanted)
    if count < legality.MANY:
        half = _Rows.of(rows[:2], n)
        assert np.array_equal(half.and_also(_Rows.of(rows[2:], n)).hold(points), wanted)
        assert half.and_also(_Rows.of([], n)) is half
        assert wanted.any()
        assert filled < 0.5 or not wanted.all()


def test_levels_are_checked_in_batches_and_a_groups_own_row_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    space = mc.Space("batches")
    a, b = space.categorical("a", ["x", "y", "z"]), space.integer("b", 0, 4)
    space.categorical("c", ["p", "q"], when=a["x"])
    space.rule("together", b + 2 * a["z"] <= 4)
    space.rule("one of", a["x"] + a["y"] == 1, when=b >= 3)
    program = compiled(space).program
    check = Legality(program)
    levels = np.array([[i, j, k] for i in range(3) for j in range(5) for k in ((0, 1) if i == 0 else (2,))])
    wanted = [j + 2 * (i == 2) <= 4 and (j < 3 or i < 2) for i, j, _ in levels.tolist()]
    assert check.check(levels).tolist() == wanted
    monkeypatch.setattr(legality, "CHECKED", 3 * program.n_z)
    assert check.check(levels).tolist() == wanted
    assert len(check._direct) < len(program.groups) + 2 + 2
    assert not any(row.low == row.high == 1.0 and not row.rule for row in check._direct)


@pytest.mark.parametrize("seed", range(8))
def test_groups_are_off_exactly_where_their_conditions_fail(seed: int) -> None:
    """Conditions on up to three earlier parameters, all of them or any of them, some of them negated."""
    rng, space = np.random.default_rng(seed), mc.Space("conditions")
    parameters, known = [], list[tuple[str, list[tuple[int, set[int], bool]]]]()
    for k in range(9):
        join = str(rng.choice(["all", "any"]))
        parents = rng.choice(k, size=min(k, int(rng.integers(0, 4))), replace=False).tolist()
        terms = [
            (p, set(rng.choice(3, size=int(rng.integers(1, 3)), replace=False).tolist()), bool(rng.random() < 0.3))
            for p in parents
        ]
        given = [
            ~parameters[p].is_(*sorted(v)) if negated else parameters[p].is_(*sorted(v)) for p, v, negated in terms
        ]
        when = reduce(and_ if join == "all" else or_, given) if given else None
        parameters.append(space.integer(f"p{k}", 0, 2, when=when))
        known.append((join, terms))
    program = compiled(space).program
    latent = rng.integers(0, program.sizes, (200, 9))
    found = group_activity(program).effective(latent)
    for of, levels in zip(latent.tolist(), found.tolist(), strict=True):
        wanted = list[int]()
        for k, (join, terms) in enumerate(known):
            # a parameter that is off has none of its values, so that a negated condition on it holds
            held = [(wanted[p] in values) != negated for p, values, negated in terms]
            on = all(held) if join == "all" or not held else any(held)
            wanted.append(min(of[k], 2) if on else 3)
        assert levels == wanted
