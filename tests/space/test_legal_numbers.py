"""The legal set of the numbers: parts against brute force, walks against known distributions, clean values against Python."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from pyomo.gdp import Disjunction

import mipcash as mc
from mipcash.backends.task import SolverSettings
from mipcash.program.forms import QuadraticForm
from mipcash.space.domain import Domain
from mipcash.space.numbers.legal_numbers import LegalNumbers


def legal_set(space: mc.Space) -> LegalNumbers:
    domain = Domain.of(space)
    columns = domain.minimise(QuadraticForm.zero(domain.program.n), SolverSettings()).columns
    assert columns is not None
    found = domain.legal_numbers(domain.program.levels_of(columns), columns)
    assert found is not None
    return found


def box_with_hole() -> mc.Space:
    """[0, 1]^2 without its middle: x or y is far from 1/2."""
    space = mc.Space("hole")
    x, y = space.real("x", 0, 1), space.real("y", 0, 1)
    space.model.around = Disjunction(
        expr=[[x <= 0.3], [x >= 0.7], [y <= 0.3, x >= 0.3, x <= 0.7], [y >= 0.7, x >= 0.3, x <= 0.7]]
    )
    return space


def test_parts_are_the_disjuncts_and_legality_is_their_union() -> None:
    space = box_with_hole()
    found = legal_set(space)
    assert len(found.parts) == 4
    rng = np.random.default_rng(0)
    for x, y in rng.random((60, 2)):
        truth = x <= 0.3 or x >= 0.7 or y <= 0.3 or y >= 0.7
        assert found.legal(np.array([x, y])) == truth == space.is_legal({"x": x, "y": y})


def test_integers_and_reals_that_equations_bind_move_together() -> None:
    space = mc.Space("bound")
    n, m = space.integer("n", 0, 100), space.integer("m", 0, 300, step=3)
    x = space.real("x", 0, 1000)
    space.rule("all", 2 * n + m + x == 500)
    space.rule("more", n + x >= 100)
    rng = np.random.default_rng(0)
    found = legal_set(space)
    drawn = np.array([found.spread(np.array([50.0, 150.0, 250.0]), 60, rng) for _ in range(60)])
    assert all(found.legal(d) for d in drawn)
    assert np.all(drawn[:, 1] % 3 == 0)
    assert np.ptp(drawn[:, 0]) > 60
    assert np.ptp(drawn[:, 1]) > 150


@pytest.mark.parametrize("seed", [0, 5])
def test_clean_numbers_keep_drawn_rules_as_python_evaluates_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 6))
    space = mc.Space("drawn")
    low, high = rng.uniform(-3, 0, k), rng.uniform(1, 10.0 ** rng.integers(0, 5), k)
    x = [space.real(f"x{i}", float(low[i]), float(high[i])) for i in range(k)]
    inside = rng.uniform(low, high)
    rows = []
    for r in range(int(rng.integers(1, 4))):
        c = np.round(rng.normal(size=k), 3) * 10.0 ** rng.integers(-3, 4)
        equal = r == 0 and seed % 2 == 0
        bound = float(sum(float(c[i]) * inside[i] for i in range(k))) + (
            0.0 if equal else abs(float(rng.normal())) * 0.1
        )
        body = sum(float(c[i]) * x[i] for i in range(k))
        space.rule(f"r{r}", body == bound if equal else body <= bound)
        rows.append((c, bound, equal))
    found = legal_set(space)
    for _ in range(20):
        vertex = found.parts[0].polytope.minimise(rng.normal(size=k))
        assert vertex is not None
        clean = found.clean(vertex + rng.uniform(-1e-10, 1e-10, k) * (high - low))
        assert clean is not None
        for c, bound, equal in rows:
            terms = [float(c[i]) * float(clean[i]) for i in range(k)]
            for order in itertools.islice(itertools.permutations(terms), 24):
                if equal:
                    assert abs(sum(order) - bound) <= 1e-12 * max(map(abs, [*terms, bound]))
                else:
                    assert sum(order) <= bound
        assert np.all((clean >= low) & (clean <= high))


def test_a_number_at_the_end_of_a_rule_is_there_exactly() -> None:
    space = mc.Space("ends")
    x, y = space.real("x", 0, 10), space.real("y", 0, 1)
    space.rule("x", 3 * x >= 13.5)
    space.rule("y", 0.1 * y <= 0.03)
    assert space.optimum(x).config["x"] == 4.5
    most = space.optimum(y, "max").config["y"]
    assert 0.1 * most <= 0.03
    assert most == pytest.approx(0.3, abs=1e-15)
    assert space.nearest({"x": 1.0, "y": 0.9}) == {"x": 4.5, "y": most}
