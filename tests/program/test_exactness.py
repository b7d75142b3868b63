"""Exactness of the compiled program on random spaces, against brute force.

The points of the program (enumerated from the raw rows, :mod:`tests.fuzz.points`) are the legal configurations.
``space.is_legal``, ``Legality``, ``encode`` and ``decode`` agree with brute force.
Optima of random quadratic forms and expressions are the enumerated ones, and ``bound <= value``.
"""

from __future__ import annotations

import collections
import itertools

import numpy as np
import pytest

import mipcash as mc
from mipcash.backends.task import SolverSettings
from mipcash.program.forms import QuadraticForm
from mipcash.program.legality import Legality
from mipcash.program.program import BinaryProgram
from mipcash.space.compiled import compiled
from mipcash.space.domain import Domain
from tests.fuzz import points as raw
from tests.fuzz.cases import DISCRETE, cases
from tests.fuzz.kinds import Case
from tests.fuzz.points import key
from tests.fuzz.questions import begin, check_legality, check_optimum, objective
from tests.fuzz.record import Record
from tests.fuzz.table import Config

SPACES_PER_KIND = 12


@pytest.mark.parametrize("kind", DISCRETE)
def test_program_equals_brute_force(kind: str) -> None:
    seen: collections.Counter[str] = collections.Counter()
    for case in cases(SPACES_PER_KIND, 0, (kind,)):
        try:
            check_space(case, seen)
        except BaseException as error:
            error.add_note(f"space {case.k} of {kind!r}")
            raise
    for found in ("cut", "empty", "complete"):  # the drawn spaces are not trivial
        assert seen[found] >= 1, (found, seen)


def check_space(case: Case, seen: collections.Counter[str]) -> None:
    record = Record(case.k, case.kind)
    asked = begin(case, record, seed=0)
    assert asked is not None
    space, program = asked.space, compiled(asked.space).program
    configs = [case.truth.table.config(c) for c in range(case.truth.table.configs)]
    legal = case.truth.legal_configs

    columns = {g.parameter for g in program.groups} | {n.label for n in program.numbers}
    expected = {key({n: v for n, v in c.items() if n in columns}) for c, ok in zip(configs, legal, strict=True) if ok}
    found, loose = raw.points(program)
    assert not loose, "a product column is not determined by the rows"
    assert raw.configurations(program, found) == expected

    numbers = {n.label for n in program.numbers} | {n.label for n in compiled(space).tuned}
    for config in configs:
        levels = program.encode(config)
        assert np.array_equal(program.one_hot(levels), raw.one_hot(program, config))
        assert key(program.decode(levels, {n: v for n, v in config.items() if n in numbers})) == key(config)

    check_levels(case, program, configs, seen)
    check_form(space, program, [c for c, ok in zip(configs, legal, strict=True) if ok], asked.rng)
    check_legality(asked)
    if terms := objective(case, asked.rng, quadratic=True):
        check_optimum(asked, "default", terms)
    assert not "\n".join(map(str, record.disagreements))
    seen["empty"] += case.truth.empty
    seen["cut"] += bool(legal.any() and not legal.all())


def check_levels(case: Case, program: BinaryProgram, configs: list[Config], seen: collections.Counter[str]) -> None:
    """Check ``Legality`` of all levels, at free and fixed wide integers. An incomplete one accepts all legal levels."""
    legal, free = case.truth.legal_configs, Legality(program)
    levels = np.array([program.encode(c) for c in configs])
    of_levels: collections.Counter[tuple[int, ...]] = collections.Counter()
    for row, ok in zip(levels.tolist(), legal.tolist(), strict=True):
        of_levels[tuple(row)] += ok
    truth, said = np.array([of_levels[tuple(row)] > 0 for row in levels.tolist()]), free.check(levels)
    assert np.array_equal(said, truth) if free.complete else np.all(said[truth])

    chosen = {n.label: case.drawn[n.label].values[len(case.drawn[n.label].values) // 2] for n in program.numbers}
    fixed = Legality(program, {label: float(v) for label, v in chosen.items()})
    here = np.array([all(c.get(n, v) == v for n, v in chosen.items()) for c in configs])
    said = fixed.check(levels)
    assert np.array_equal(said[here], legal[here]) if fixed.complete else np.all(said[here & legal])

    seen["complete"] += fixed.complete

    latent = raw.all_levels(program)
    if latent is not None:
        assert {tuple(row) for row in free.effective(latent).tolist()} == set(of_levels)


def check_form(space: mc.Space, program: BinaryProgram, admitted: list[Config], rng: np.random.Generator) -> None:
    """Check the minimum of a random quadratic form over z with random pair couplings."""
    n_z, groups = program.n_z, program.groups
    linear = np.zeros(program.n)
    linear[:n_z] = rng.normal(size=n_z)
    pairs = [
        pair if rng.random() < 0.5 else pair[::-1]
        for g, h in itertools.combinations(groups, 2)
        if rng.random() < 0.5
        for pair in itertools.product(range(g.start, g.stop), range(h.start, h.stop))
        if rng.random() < 0.7
    ]
    rows, cols = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    form = QuadraticForm(float(rng.normal()), linear, rows, cols, rng.normal(size=len(rows)))
    domain = Domain.of(space)
    for _ in range(2):  # the second time local search starts from the pool
        answer = domain.minimise(form, SolverSettings(gap=0.0), rng=rng)
        if not admitted:
            assert (answer.status, answer.columns) == ("infeasible", None)
            return
        z = np.array([raw.one_hot(program, c) for c in admitted])
        values = form.constant + z @ linear[:n_z] + (z[:, rows] * z[:, cols]) @ form.values
        assert answer.columns is not None
        assert answer.status == "optimal"
        assert answer.value == pytest.approx(values.min(), abs=1e-6)
        assert values.min() - 1e-5 <= answer.bound <= answer.value
        reached = values[np.all(z == program.one_hot(program.levels_of(answer.columns)), axis=1)]
        assert len(reached), "the optimum's levels are not legal"
        assert reached[0] == pytest.approx(values.min(), abs=1e-6)
