"""Programs at random points, legal or not, against their definition: rows at fixed numbers, products, legality of levels."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.program.affine_rows import AffineBlock, affine_rows, blockable
from mipcash.program.forms import Indices, QuadraticForm, Vector
from mipcash.program.legality import group_activity, legality_at
from mipcash.program.program import BaseRow, BinaryProgram
from mipcash.program.rewriting import with_products
from mipcash.space.compiled import compiled
from tests.program import test_compiled
from tests.space import test_recorded

SPACES: dict[str, Callable[[mc.Space], Any]] = {
    declare.__name__: declare for declare in (*test_compiled.SPACES, *test_recorded.SPACES)
}


def space_of(name: str) -> mc.Space:
    space = mc.Space(name, expand_limit=32)
    SPACES[name](space)
    return space


def program_of(name: str) -> BinaryProgram:
    return compiled(space_of(name)).program


def columns_at(program: BinaryProgram, levels: Indices, numbers: Mapping[str, float], others: Vector) -> Vector:
    """Base columns of levels and numbers; those of auxiliary variables are taken from ``others``, shape (n,)."""
    z, columns = program.one_hot(levels), others.copy()
    columns[: program.n_z] = z
    for number in program.numbers:
        on = all(bool(c.holds(z)) for c in number.conditions)
        domain: Any = program.domains[number.label]
        if number.on is not None:
            columns[number.on] = on
        if number.place >= 0:
            columns[number.place] = round((numbers[number.label] - domain.low) / domain.step)
        columns[number.latent] = numbers[number.label]
        columns[number.column] = numbers[number.label] * on
    for product in program.bilinear:
        columns[product.column] = columns[product.first] * columns[product.second]
    return columns


def point(program: BinaryProgram, rng: np.random.Generator) -> tuple[Indices, dict[str, float], Vector]:
    """Random levels, numbers and base columns that agree with each other; auxiliary variables are drawn from their bounds."""
    levels = group_activity(program).effective(rng.integers(0, np.maximum(program.n_levels, 1))[None])[0]
    numbers = dict[str, float]()
    for number in program.numbers:
        domain: Any = program.domains[number.label]
        numbers[number.label] = float(domain.from_unit(rng.random()))
    drawn = rng.uniform(program.low[: program.n], program.high[: program.n])
    drawn = np.where(program.integer[: program.n] > 0, np.round(drawn), drawn)
    return levels, numbers, columns_at(program, levels, numbers, drawn)


def missing(row: BaseRow, columns: Vector) -> tuple[float, float]:
    """By how much the value of a row is above its lower and below its upper bound."""
    value = row.form.value(columns)
    return value - row.low, row.high - value


@pytest.mark.parametrize("name", SPACES)
def test_a_row_at_fixed_numbers_has_the_same_room(name: str) -> None:
    program, rng = program_of(name), np.random.default_rng(0)
    for _ in range(20):
        _, numbers, columns = point(program, rng)
        for each in affine_rows(program):
            if each.parts is not None and not each.latent:
                at = each.at(numbers)
                assert missing(at, columns) == pytest.approx(missing(each.row, columns), rel=1e-9, abs=1e-9)
                used = np.concatenate([np.flatnonzero(at.form.linear), at.form.rows, at.form.cols])
                assert not set(used.tolist()) & {c for n in program.numbers for c in (n.column, n.latent)}


@pytest.mark.parametrize("name", SPACES)
def test_rows_that_are_evaluated_together_are_those_rows(name: str) -> None:
    """A row that a block leaves out holds at all levels."""
    program, rng = program_of(name), np.random.default_rng(1)
    rows = [each for each in affine_rows(program) if blockable(each)]
    if not rows:
        return
    block = AffineBlock.of(program, rows)
    for _ in range(20):
        _, numbers, _ = point(program, rng)
        found: dict[str, list[BaseRow]] = {}
        for row in block.at(numbers):
            found.setdefault(row.rule, []).append(row)
        for each in rows:
            alone = each.at(numbers)
            if not any(are_equal(alone, row) for row in found.get(alone.rule, [])):
                for _ in range(30):
                    levels, _, columns = point(program, rng)
                    assert bool(alone.holds(np.array(alone.form.value(columns)))), (alone.rule, levels)


def are_equal(alone: BaseRow, row: BaseRow) -> bool:
    """Return True if two rows without products are the same."""
    same = np.allclose(alone.form.linear, row.form.linear) and alone.slack == row.slack
    return bool(same and np.allclose([alone.low, alone.high], [row.low, row.high]))


@pytest.mark.parametrize("name", SPACES)
def test_products_in_columns_have_the_value_of_the_form(name: str) -> None:
    """Forms with products of levels with levels and numbers, as costs of the columns of a program with these products."""
    program, rng = program_of(name), np.random.default_rng(2)
    if not program.n_z:
        return
    count = 12
    first, second = rng.integers(0, program.n_z, count), rng.integers(0, program.n, count)
    form = QuadraticForm(0.7, rng.normal(size=program.n), first, second, rng.normal(size=count))
    folded = program.folded(form)
    wide = with_products(program, program.couplings(folded))
    rows = [r for r in range(wide.matrix.shape[0]) if not wide.row_rule[r]]
    matrix, low, high = wide.matrix[rows], wide.row_low[rows], wide.row_high[rows]
    for _ in range(20):
        levels, _, columns = point(program, rng)
        value = form.value(columns)
        assert folded.value(columns) == pytest.approx(value)
        lifted = wide.lifted(columns)
        known = ~np.isnan(lifted)
        cost = wide.cost(folded)
        assert folded.constant + cost[known] @ lifted[known] == pytest.approx(value)
        assert not cost[~known].any()
        assert np.array_equal(program.levels_of(columns), levels)
        assert np.array_equal(program.levels_at(program.one_hot(levels)), levels)
        body = matrix[:, known] @ lifted[known]
        near = 1e-6 * (1 + abs(body))
        for product in wide.products:
            touched = np.flatnonzero(abs(matrix[:, product.start : product.start + product.size]).sum(axis=1))
            assert (body[touched] >= (low - near)[touched]).all()
            assert (body[touched] <= (high + near)[touched]).all()


@pytest.mark.parametrize("name", SPACES)
def test_configurations_are_legal_if_the_program_says_so(name: str) -> None:
    """The rules as declared, in Python, agree with the rows at levels and numbers, where no auxiliary variable is left."""
    space = space_of(name)
    known, rng = compiled(space), np.random.default_rng(4)
    program = known.program
    for _ in range(60):
        levels, numbers, _ = point(program, rng)
        legality = legality_at(program, numbers)
        free = {x.label: x.domain.from_unit(0.5) for x in known.tuned if x.label not in numbers}
        if legality.complete and not program.bilinear:
            config = program.decode(levels, known.active(levels, {**numbers, **free}))
            assert bool(legality.check(levels[None])[0]) == space.is_legal(config)


@pytest.mark.parametrize("name", SPACES)
def test_levels_are_legal_if_all_rows_hold(name: str) -> None:
    """In spaces without auxiliary variables, for all levels or for many, at random numbers."""
    program, rng = program_of(name), np.random.default_rng(3)
    own = {c for n in program.numbers for c in (n.column, n.latent, n.on, n.place)} | {
        p.column for p in program.bilinear
    }
    if set(range(program.n_z, program.n)) - own:
        return
    latent = np.array(list(itertools.islice(itertools.product(*map(range, program.n_levels)), 3000)), dtype=np.int64)
    every = group_activity(program).effective(latent.reshape(len(latent), len(program.groups)))
    some = every[rng.permutation(len(every))[:60]]
    for _ in range(8):
        _, numbers, _ = point(program, rng)
        legality = legality_at(program, numbers)
        if not legality.complete:
            return
        for levels, found in zip(some, legality.check(some).tolist(), strict=True):
            assert found == all_hold(program, levels, numbers)


@pytest.mark.parametrize("name", SPACES)
def test_legal_levels_are_completed_by_columns_that_satisfy_all_rows(name: str) -> None:
    """At the levels and numbers of samples, with auxiliary variables, bits and products."""
    space = space_of(name)
    if name in ("contradicting", "odd"):
        return
    program = compiled(space).program
    for config in space.sample(4, seed=2):
        numbers = {n.label: float(config.get(n.label, program.low[n.latent])) for n in program.numbers}
        legality, levels = legality_at(program, numbers), program.encode(config)
        if legality.complete:
            assert legality.check(levels[None]).tolist() == [True]
            base = legality.completed(levels)
            assert np.array_equal(program.levels_of(base), levels)
            for row in program.base_rows:
                assert min(missing(row, base)) >= -2 * row.slack - 1e-9, row.rule


def all_hold(program: BinaryProgram, levels: Indices, numbers: Mapping[str, float]) -> bool:
    """Return True if each row of rules or structure holds at levels and numbers."""
    columns = columns_at(program, levels, numbers, np.zeros(program.n))
    return all(bool(row.holds(np.array(row.form.value(columns)))) for row in program.base_rows)
