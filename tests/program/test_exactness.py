"""The compiled program is exact: its points are the legal configurations, its optima the enumerated ones.

Every drawn space is compared with its plain-Python meaning (:mod:`tests.strategies.meaning`):

    points of the program (enumerated from the raw rows, :mod:`tests.strategies.points`)  ==  brute force  ==  ``space.is_legal``
    ``Legality`` and ``encode``/``decode``  ==  brute force
    optimum of random quadratic forms and of random expressions  ==  enumerated optimum, ``bound <= value``
"""

from __future__ import annotations

import collections
import itertools

import numpy as np
import pytest
from hypothesis import strategies as st

from mipcash.backends.task import SolverSettings
from mipcash.program.forms import QuadraticForm
from mipcash.program.legality import Legality
from mipcash.space.compiled import compiled
from mipcash.space.domain import Domain
from tests.fuzz.described import Active, Drawn, Term, Value, build, expression
from tests.strategies import points as raw
from tests.strategies.distinct import check_distinct
from tests.strategies.meaning import Meaning, key
from tests.strategies.spaces import draw_terms, drawn_spaces

PARTS = 2
SPACES_PER_PART = 100
"""Each part is a test of its own so that workers share them."""

CHECKED_CONFIGS = 10
"""Configurations per space that ``space.is_legal`` is asked about (logic costs a solve each)."""


@st.composite
def cases(draw: st.DrawFn) -> tuple[Drawn, tuple[Term, ...], int]:
    """A space, an expression over it and a seed for the rest."""
    drawn = draw(drawn_spaces())
    terms = draw_terms(draw, drawn, quadratic=True, tuned_only=True)
    return drawn, tuple(t for t in terms if _wide_factors(drawn, t) < 2), draw(st.integers(0, 2**32))


@pytest.mark.parametrize("part", range(PARTS))
def test_program_equals_brute_force(part: int) -> None:
    seen: collections.Counter[str] = collections.Counter()

    def check(drawn: Drawn, terms: tuple[Term, ...], number: int) -> None:
        check_space(drawn, terms, np.random.default_rng(number), seen)

    check_distinct(cases(), check, SPACES_PER_PART, part)
    # the drawn spaces are not trivial: rules cut some, leave some, and every kind occurs
    assert seen["cut"] >= SPACES_PER_PART // 4, seen
    assert 1 <= seen["empty"] <= SPACES_PER_PART // 2, seen
    for kind in ("helpers", "wide", "ordering", "conditional", "logic", "disjunction", "products", "legality"):
        assert seen[kind] >= 2, (kind, seen)


def check_space(
    drawn: Drawn, terms: tuple[Term, ...], rng: np.random.Generator, seen: collections.Counter[str]
) -> None:
    meaning = Meaning(drawn)
    configs = meaning.enumerate()
    legal = meaning.legal(configs)
    space = build(drawn)
    program = compiled(space).program

    columns = {g.parameter for g in program.groups} | {n.label for n in program.numbers}
    expected = {key({n: v for n, v in c.items() if n in columns}) for c, ok in zip(configs, legal, strict=True) if ok}
    found, loose = raw.points(program)
    assert not loose, "a product column is not determined by the rows"
    assert raw.configurations(program, found) == expected

    order = rng.permutation(len(configs))
    for k in order[:CHECKED_CONFIGS] if drawn.clauses or drawn.choices else order[: 3 * CHECKED_CONFIGS]:
        assert space.is_legal(configs[k]) == legal[k], (configs[k], space.validate(configs[k]))

    check_legality(drawn, program, configs, legal, seen)
    numbers = {n.label for n in program.numbers} | {n.label for n in compiled(space).tuned}
    for config in configs:
        levels = program.encode(config)
        assert np.array_equal(program.one_hot(levels), raw.one_hot(program, config))
        assert key(program.decode(levels, {n: v for n, v in config.items() if n in numbers})) == key(config)

    check_form(space, program, configs, legal, rng)
    check_expression(drawn, space, configs, legal, terms)

    seen["empty"] += not legal.any()
    seen["cut"] += bool(legal.any() and not legal.all())
    seen["helpers"] += bool(drawn.auxiliaries)
    seen["wide"] += bool(program.numbers)
    seen["ordering"] += any(p.kind == "ordering" for p in drawn.parameters)
    seen["conditional"] += any(p.when for p in drawn.parameters)
    seen["logic"] += bool(drawn.clauses)
    seen["disjunction"] += bool(drawn.choices)
    seen["products"] += program.n_columns > program.n


def check_legality(
    drawn: Drawn, program: object, configs: list, legal: np.ndarray, seen: collections.Counter[str]
) -> None:
    free = Legality(program)
    levels = np.array([program.encode(c) for c in configs])
    said = free.check(levels)
    if program.numbers:
        of_levels: dict[tuple[int, ...], bool] = {}
        for row, ok in zip(levels.tolist(), legal, strict=True):
            of_levels[tuple(row)] = of_levels.get(tuple(row), False) or bool(ok)
        truth = np.array([of_levels[tuple(row)] for row in levels.tolist()])
    else:
        truth = legal
    if free.complete:
        assert np.array_equal(said, truth)
        seen["legality"] += 1
    else:
        assert np.all(said[truth]), "an incomplete check must not refuse a legal configuration"

    if program.numbers:
        labels = [n.label for n in program.numbers]
        chosen = {label: drawn[label].values[len(drawn[label].values) // 2] for label in labels}
        fixed = Legality(program, {label: float(v) for label, v in chosen.items()})
        here = np.array([all(c.get(l, chosen[l]) == chosen[l] for l in labels) for c in configs])
        said = fixed.check(levels)
        if fixed.complete:
            assert np.array_equal(said[here], legal[here])
            seen["legality at numbers"] += 1
        else:
            assert np.all(said[here & legal])

    latent = raw.all_levels(program)
    if latent is not None:
        effective = {tuple(row) for row in free.effective(latent).tolist()}
        assert effective == {tuple(row) for row in levels.tolist()}


def check_form(space: object, program: object, configs: list, legal: np.ndarray, rng: np.random.Generator) -> None:
    """A random quadratic form over z with random pair couplings."""
    n_z, groups = program.n_z, program.groups
    linear = np.zeros(program.n)
    linear[:n_z] = rng.normal(size=n_z)
    pairs = [p for p in itertools.combinations(range(len(groups)), 2) if rng.random() < 0.5]
    rows, cols = [], []
    for g, h in pairs:
        for a in range(groups[g].start, groups[g].stop):
            for b in range(groups[h].start, groups[h].stop):
                if rng.random() < 0.7:
                    rows.append(a)
                    cols.append(b)
    flip = rng.random(len(rows)) < 0.5
    rows, cols = np.where(flip, cols, rows).astype(np.int64), np.where(flip, rows, cols).astype(np.int64)
    values = rng.normal(size=len(rows))
    constant = float(rng.normal())
    form = QuadraticForm(constant, linear, rows, cols, values)
    domain = Domain.of(space)
    admitted = [c for c, ok in zip(configs, legal, strict=True) if ok]
    for _ in range(2):  # the second time local search starts from the pool
        answer = domain.minimise(form, SolverSettings(gap=0.0), rng=rng)
        if not admitted:
            assert answer.columns is None
            assert answer.status == "infeasible"
            return
        z = np.array([raw.one_hot(program, c) for c in admitted])
        best = constant + z @ linear[:n_z] + (z[:, rows] * z[:, cols]) @ values
        assert answer.columns is not None
        assert answer.status == "optimal"
        assert answer.value == pytest.approx(best.min(), abs=1e-6)
        assert answer.bound <= answer.value
        assert answer.bound >= best.min() - 1e-5
        reached = best[np.all(z == program.one_hot(program.levels_of(answer.columns)), axis=1)]
        assert len(reached), "the optimum's levels are not legal"
        assert reached[0] == pytest.approx(best.min(), abs=1e-6)


def check_expression(drawn: Drawn, space: object, configs: list, legal: np.ndarray, terms: tuple[Term, ...]) -> None:
    """A random expression over the parameters, both senses."""
    if not terms:
        return
    body = expression(drawn, terms, space)
    bodies = Meaning(drawn).bodies(terms, configs)[:, 0]
    for sense, best in (("min", np.min), ("max", np.max)):
        solution = space.optimum(body, sense)
        if not legal.any():
            assert (solution.status, solution.config) == ("infeasible", None)
            return
        optimum = float(best(bodies[legal]))
        assert solution.status == "optimal"
        assert solution.value == pytest.approx(optimum, abs=1e-5)
        at = [k for k, c in enumerate(configs) if key(c) == key(solution.config)]
        assert at, f"{solution.config} is no configuration"
        assert legal[at[0]]
        assert bodies[at[0]] == pytest.approx(optimum, abs=1e-5)
        side = 1.0 if sense == "min" else -1.0
        assert side * solution.bound <= side * solution.value + 1e-12


def _wide_factors(drawn: Drawn, term: Term) -> int:
    """How many factors are numbers in the program; a product of two is refused in objectives."""
    wide = {p.name for p in drawn.parameters if p.kind == "integer" and len(p.values) > drawn.expand_limit}
    return sum(isinstance(f, (Value, Active)) and f.name in wide for f in term.factors)
